package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/kmsharness/kmsharness/internal/host"
)

// DefaultMode of a socket file: only the owner may talk to a plugin.
const DefaultMode fs.FileMode = 0o600

// DecoyText begins a regular file that the fault socket-replaced puts in the socket's place. It marks the file as
// ours, so that a plugin killed in mid-fault can be started again.
const DecoyText = "fake-kms-plugin: this file stands where a socket should be\n"

// dialLimit bounds the question whether a socket found on disk is alive. A local connect answers at once; only a
// peer with a full backlog takes longer, and that one is alive.
const dialLimit = time.Second

// Listen opens e. For a socket file it creates the directory, removes what a killed predecessor left behind and sets
// the file's mode; closing the listener leaves the file, so that the caller decides what a client finds there.
func Listen(h host.Host, e Endpoint, mode fs.FileMode) (net.Listener, error) {
	if e.IsFile() {
		if err := os.MkdirAll(filepath.Dir(e.Address), 0o755); err != nil {
			return nil, fmt.Errorf("listen on %s: %w", e, err)
		}
		if err := RemoveStale(h, e.Address); err != nil {
			return nil, fmt.Errorf("listen on %s: %w", e, err)
		}
	}
	l, err := h.Listen(context.Background(), e.Network, e.Address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", e, err)
	}
	if !e.IsFile() {
		return l, nil
	}
	if err := os.Chmod(e.Address, mode); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", e, err), l.Close())
	}
	return l, nil
}

// Open is Listen. With takeOver it begins in the place of a process that may serve there still: new connections come to this one, and those of the other
// stay with it.
func Open(h host.Host, e Endpoint, mode fs.FileMode, takeOver bool) (net.Listener, error) {
	if info, err := os.Lstat(e.Address); takeOver && e.IsFile() && err == nil && info.Mode().Type() == fs.ModeSocket {
		if err := os.Remove(e.Address); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("listen on %s in the place of another process: %w", e, err)
		}
	}
	return Listen(h, e, mode)
}

// Leave removes the socket of a listener that was closed, if it is a file. One on which a successor listens by now stays.
func Leave(h host.Host, e Endpoint) error {
	if !e.IsFile() {
		return nil
	}
	if err := RemoveStale(h, e.Address); !errors.Is(err, errServed) {
		return err
	}
	return nil
}

var errServed = errors.New("another process serves it: stop that, or choose another path")

// RemoveStale removes a socket on which nobody listens, or a decoy. It refuses to touch anything else: a live socket
// belongs to another process and a foreign file to somebody who put it there.
func RemoveStale(h host.Host, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for a stale socket: %w", err)
	}
	switch {
	case info.Mode().Type() == fs.ModeSocket:
		if alive(h, path) {
			return fmt.Errorf("%s: %w", path, errServed)
		}
	case !isDecoy(path, info):
		return fmt.Errorf("%s exists and is not a socket: remove it or choose another path", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove stale socket: %w", err)
	}
	return nil
}

func alive(h host.Host, path string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), dialLimit)
	defer cancel()
	conn, err := h.Dial(ctx, "unix", path)
	if errors.Is(err, fs.ErrPermission) && os.Chmod(path, DefaultMode) == nil {
		conn, err = h.Dial(ctx, "unix", path) // our own, left with the wrong mode by a fault
	}
	if err == nil {
		_ = conn.Close()
		return true
	}
	return !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist)
}

func isDecoy(path string, info fs.FileInfo) bool {
	if !info.Mode().IsRegular() || info.Size() != int64(len(DecoyText)) {
		return false
	}
	text, err := os.ReadFile(path)
	return err == nil && strings.HasPrefix(string(text), DecoyText)
}
