package local

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/internal/command"
)

// Options of the backend. The zero value works: this project's own reporter and aggregator, and binaries of the
// control plane from wherever harness/assets finds them.
type Options struct {
	live.SystemUnderTest
	// PluginArgs are further arguments of every fake plugin, quoted as in a command template: a plugin that is broken
	// from the start ("--fault key-id-flip-flop") shows what a run makes of it.
	PluginArgs string
	// ReporterMountSockets gives each reporter a mount namespace in which its plugins listen at
	// contract.SocketDir, for reporters that insist on that path. It needs root.
	ReporterMountSockets bool
	// Manifest may change a manifest before it is installed: a cluster that is set up wrongly shows what a run makes of it.
	Manifest func(*unstructured.Unstructured)
	// Assets says where etcd and kube-apiserver come from.
	Assets assets.Options
	// Idle is how many control planes are kept for later scenarios while none uses them; 0 means DefaultIdle. Each
	// costs about 300 MB per API server.
	Idle int
}

// DefaultIdle keeps the plane that was used last. One of three API servers that nobody uses still takes a tenth of two processors.
const DefaultIdle = 1

func (o Options) idle() int {
	if o.Idle == 0 {
		return DefaultIdle
	}
	return o.Idle
}

// Flags are the command-line flags of kmsharness run and e2e that ask for the same again, quoted for a shell.
func (o Options) Flags() []string {
	var flags []string
	for _, f := range [][2]string{
		{"--reporter-command", o.ReporterCommand}, {"--aggregator-command", o.AggregatorCommand}, {"--operator-command", o.OperatorCommand}, {"--operator-door", o.OperatorDoor}, {"--reporter-identity", o.ReporterIdentity},
		{"--plugin-args", o.PluginArgs},
	} {
		if f[1] != "" {
			flags = append(flags, f[0], Quote(f[1]))
		}
	}
	for _, f := range o.Plugin.Flags() {
		if f[1] != "" {
			flags = append(flags, f[0], Quote(f[1]))
		}
	}
	if o.ReporterMountSockets {
		flags = append(flags, "--reporter-mount-sockets")
	}
	return flags
}

// Quote makes one word of a text for a shell. A credential in it is not shown.
func Quote(text string) string {
	return "'" + strings.ReplaceAll(command.Redacted(text), "'", `'\''`) + "'"
}

func (o Options) validate() error {
	if err := o.SystemUnderTest.Validate(); err != nil {
		return err
	}
	if _, err := command.Split(o.PluginArgs); err != nil {
		return fmt.Errorf("plugin arguments: %w", err)
	}
	if o.ReporterMountSockets && os.Geteuid() != 0 {
		return errors.New("sockets under " + contract.SocketDir + " need a mount namespace for each reporter, which needs root: run as root, or let the reporter take its sockets from {sockets}")
	}
	return o.CheckPrograms(live.Findable)
}

const (
	// Tolerance is what a busy machine with 2 cores may add to any bound: some ten processes share them, and one
	// API server start (2 s of CPU) beside a running scenario delays everybody else by a few hundred milliseconds.
	Tolerance = 500 * time.Millisecond

	// bootTimeout bounds a boot, which takes 3 to 10 s; first starts from a cold disk take longer.
	bootTimeout = 2 * time.Minute
	// encryptionPoll is how often API servers look for a changed encryption configuration, where the binary can be told.
	encryptionPoll = 500 * time.Millisecond
	// reloadGrace is for an API server that is not starved to load a configuration between two scenarios: two looks, and a call of each plugin.
	// Where it is not enough, it is started anew.
	reloadGrace = 3 * time.Second
)
