package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/process"
)

// upPlace is the directory of this user's one environment. It has:
//
//	lock  held by the environment's process while it lives, with its process id
//	log   what the process in the background printed
//	run/  history and logs of the environment, until the next one
type upPlace string

func upPlaceOfUser() (upPlace, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a place for the environment's state: %w", err)
	}
	dir := filepath.Join(cache, "kmsharness", "up")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("find a place for the environment's state: %w", err)
	}
	return upPlace(dir), nil
}

func (p upPlace) file(name string) string { return filepath.Join(string(p), name) }

// upState is what is known of an environment that is ready.
type upState struct {
	PID     int
	History string
	// End says how to end the environment; empty: kmsharness down.
	End string `json:",omitempty"`
	live.Description
}

// lock takes the place, or says who has it: nil and a process id, which is 0 in the instant before it is written down.
// The lock goes with the process, however that ends, so a dead environment is never taken for a living one.
func (p upPlace) lock() (held *os.File, owner int, err error) {
	held, err = process.TryLock(p.file("lock"))
	if err != nil {
		return nil, 0, fmt.Errorf("lock the environment's state: %w", err)
	}
	if held == nil {
		owner = p.owner()
	}
	return held, owner, nil
}

func (p upPlace) owner() int {
	text, err := os.ReadFile(p.file("lock"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 2 {
		return 0
	}
	return pid
}

// take locks the place for this process, and forgets what an earlier environment left.
func (p upPlace) take() (*os.File, error) {
	held, owner, err := p.lock()
	if err != nil {
		return nil, err
	}
	if held == nil {
		return nil, fmt.Errorf("an environment is up already (process %d): end it with kmsharness down", owner)
	}
	err = errors.Join(held.Truncate(0), os.RemoveAll(p.file("run")), os.Mkdir(p.file("run"), 0o700))
	if err == nil {
		_, err = fmt.Fprintln(held, os.Getpid())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the environment's state: %w", err), held.Close())
	}
	return held, nil
}

// print is what a person needs to work with the environment; its first line can be pasted into a shell.
func (s upState) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "\nexport KUBECONFIG=%s\n\n", s.Kubeconfig)
	fmt.Fprintln(t, "NODE\tAPI SERVER\tKEY\tPLUGIN\tCONTROL")
	for _, n := range s.Nodes {
		name, server := n.Name, n.APIServer
		for _, p := range n.Plugins {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", name, server, p.KeyID, p.Socket, p.Control)
			name, server = "", "" // told once
		}
	}
	fmt.Fprintf(t, "\nremote KMS:\t%s\n", s.RemoteKMS)
	fmt.Fprintf(t, "logs:\t%s (reporters, aggregator), %s (control plane, plugins)\n", s.Logs, s.ControlPlaneLogs)
	fmt.Fprintf(t, "history:\t%s\n", s.History)
	if len(s.Nodes) > 0 && len(s.Nodes[0].Plugins) > 0 {
		control := "unix://" + s.Nodes[0].Plugins[0].Control
		fmt.Fprintf(t, "break it:\tkmsharness plugin inject hang method=Status --control %s\n", control)
		fmt.Fprintf(t, "mend it:\tkmsharness plugin release --control %s\n", control)
	}
	fmt.Fprintf(t, "end it:\t%s\n", cmp.Or(s.End, "kmsharness down"))
	return t.Flush()
}
