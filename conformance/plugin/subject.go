package plugin

import (
	"fmt"
	"strings"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/internal/command"
)

// Capabilities that checks need.
const (
	// SocketFile: the endpoint is a file, not an abstract socket.
	SocketFile conformance.Capability = "socket-file"
	// Process: the plugin's process runs on this machine, and its memory and descriptors can be read.
	Process conformance.Capability = "process"
	// Command: the suite starts the plugin, and may stop and kill it.
	Command conformance.Capability = "command"
	// Log: the plugin's log can be read.
	Log conformance.Capability = "log"
	// HookBreak: hooks make the KMS behind the plugin fail, and restore it.
	HookBreak conformance.Capability = "hook-break"
	// HookModes: the hook that breaks the KMS takes {mode}.
	HookModes conformance.Capability = "hook-modes"
	// HookSlow: hooks make the KMS behind the plugin slow, and restore it.
	HookSlow conformance.Capability = "hook-slow"
	// HookRotate: a hook rotates the KEK.
	HookRotate conformance.Capability = "hook-rotate"
	// HookCount: a hook prints how many log-ins the KMS has seen.
	HookCount conformance.Capability = "hook-count"
	// SecondInstance: another instance of the plugin can be called.
	SecondInstance conformance.Capability = "second-instance"
	// Addresses: the suite starts the plugin with either of two addresses of one KMS.
	Addresses conformance.Capability = "addresses"
)

// explain says what gives a capability, for results that lack it.
var explain = map[conformance.Capability]string{
	SocketFile: "a socket file (--endpoint unix:///PATH)",
	Process:    "a plugin process on this machine whose /proc entry is readable",
	Command:    "a command that starts the plugin (--plugin-command)",
	Log:        "the plugin's log (--log, or --plugin-command)",
	HookBreak:  "hooks that break and restore the KMS (plugin.break and plugin.restore in the file of --system)",
	HookModes:  "a hook that breaks the KMS in several ways (plugin.break with {mode} in the file of --system)",
	HookSlow:   "hooks that slow and restore the KMS (plugin.slow and plugin.restore in the file of --system)",
	HookRotate: "a hook that rotates the key (plugin.rotate in the file of --system)",
	HookCount:  "a hook that prints how many log-ins the KMS has seen (plugin.count in the file of --system)",

	SecondInstance: "another instance of the plugin (--second-endpoint, or --plugin-command with {socket} or {endpoint})",
	Addresses:      "two addresses of one KMS (--kms-addresses, and --plugin-command with {address})",
}

// Ways in which the KMS behind a plugin fails: the values of {mode} in Hooks.Break, and ModeSlow.
const (
	ModeFail    = "fail"     // every request fails, or the KMS cannot be reached
	ModeHang    = "hang"     // no request is answered
	ModeRefuse  = "refuse"   // the plugin's permission is withdrawn
	ModeLoseKey = "lose-key" // the key is disabled or deleted
	ModeSlow    = "slow"     // requests take long: of Hooks.Slow
)

// Placeholders of Subject.Command and of the hooks.
var (
	commandPlaceholders = []string{"socket", "endpoint", "state", "address"}
	hookPlaceholders    = []string{"socket", "endpoint", "state", "address", "mode"}
)

// Hooks are commands of the plugin's author that change the KMS behind it. They are split at spaces, and run without a shell.
type Hooks struct {
	// Break makes the KMS fail. With the placeholder {mode} it is called with fail, hang, refuse and lose-key, otherwise it means fail.
	Break string
	// Slow makes each request to the KMS take longer than kube-apiserver waits, but not for ever.
	Slow string
	// Restore undoes Break and Slow.
	Restore string
	// Rotate makes the KMS use a new KEK for the same key.
	Rotate string
	// Count prints how many log-ins the KMS has seen, as one number.
	Count string
}

// Subject is the plugin under test, and what its author lets the suite do with it.
type Subject struct {
	// Endpoint is unix:///PATH or unix:///@NAME. It may be empty if Command is given.
	Endpoint string
	// Second is where another instance of the plugin listens, one that is to serve the same cluster. Empty with Command: the suite starts one.
	Second string
	// Addresses are two of the KMS of the plugin: {address} of Command is one of them. Empty: the author names none.
	Addresses []string
	// Command starts the plugin. {socket} and {endpoint} are the path and the URL where it must listen, {state} is a folder that is kept for all
	// its runs. The plugin must run until it gets SIGTERM. Empty: the plugin runs already.
	Command string
	Hooks   Hooks
	// Log is the file to which the plugin writes its log. Empty with Command: its stdout and stderr.
	Log string
}

// Validate reports the first mistake in s.
func (s Subject) Validate() error {
	switch {
	case s.Endpoint == "" && s.Command == "":
		return fmt.Errorf("the plugin has neither an endpoint nor a command: expected --endpoint unix:///PATH, or --plugin-command with {socket}")
	case len(s.Addresses) > 0 && (len(s.Addresses) != 2 || !strings.Contains(s.Command, "{address}")):
		return fmt.Errorf("%d addresses of the KMS: expected two, and a command with {address}", len(s.Addresses))
	case (s.Hooks.Break != "" || s.Hooks.Slow != "") && s.Hooks.Restore == "":
		return fmt.Errorf("a hook breaks or slows the KMS and none restores it: expected plugin.restore")
	}
	for _, at := range []string{s.Endpoint, s.Second} {
		if at == "" {
			continue
		}
		if _, err := endpoint.ParseUnix(at); err != nil {
			return err
		}
	}
	if s.Command != "" {
		t, err := command.Parse(s.Command, commandPlaceholders...)
		if err != nil {
			return err
		}
		if s.Endpoint == "" && !t.Has("socket") && !t.Has("endpoint") {
			return fmt.Errorf("command %q: expected {socket} or {endpoint}, or --endpoint with the address where it listens", s.Command)
		}
	}
	for name, text := range map[string]string{"plugin.break": s.Hooks.Break, "plugin.slow": s.Hooks.Slow, "plugin.restore": s.Hooks.Restore, "plugin.rotate": s.Hooks.Rotate, "plugin.count": s.Hooks.Count} {
		if text == "" {
			continue
		}
		if _, err := command.Parse(text, hookPlaceholders...); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
