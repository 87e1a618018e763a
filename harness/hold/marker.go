package hold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
)

// markerSuffix is added to the path of the control socket.
const markerSuffix = ".held"

// marker is a file that says, across restarts of the container, that the program is down on request.
type marker struct {
	path string // empty: there is none, because the control socket is no file
}

func markerOf(control endpoint.Endpoint) marker {
	if !control.IsFile() {
		return marker{}
	}
	return marker{control.Address + markerSuffix}
}

// read gives Stopped or Killed, or "" if the program is not held.
func (m marker) read() (string, error) {
	b, err := os.ReadFile(m.path)
	if m.path == "" || errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read whether the program is held: %w", err)
	}
	state := strings.TrimSpace(string(b))
	if state != Stopped && state != Killed {
		return "", fmt.Errorf("read whether the program is held: %s holds %.40q: expected %s or %s; remove it", m.path, b, Stopped, Killed)
	}
	return state, nil
}

func (m marker) set(state string) error {
	if m.path == "" {
		return nil
	}
	// A rename, because a container may be killed at any instant, and half a marker would keep the next one from starting.
	next := m.path + ".next"
	if err := os.WriteFile(next, []byte(state+"\n"), 0o644); err != nil {
		return fmt.Errorf("note that the program is held: %w", err)
	}
	if err := os.Rename(next, m.path); err != nil {
		return fmt.Errorf("note that the program is held: %w", err)
	}
	return nil
}

func (m marker) clear() error {
	if err := os.Remove(m.path); m.path != "" && err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("note that the program is no longer held: %w", err)
	}
	return nil
}
