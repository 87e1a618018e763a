package kind

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// server is the API server of a node.
type server struct {
	*held
	dir  string // of its files on this machine
	url  string
	http *http.Client // an administrator's
	// resources that it encrypts, as encryption configurations name them; none: secrets.
	resources []string
}

var _ live.Server = (*server)(nil)

func (s *server) file(name string) string { return filepath.Join(s.dir, name) }

// Start implements live.Unit: it returns when the API server lives, which it always comes to, and gives it a moment to become
// ready, which it does not while a plugin is dead.
func (s *server) Start(ctx context.Context) error {
	if err := s.held.Start(ctx); err != nil {
		return err
	}
	if err := until(ctx, readyPoll, "start "+s.name, s.ask("/livez")); err != nil {
		return err
	}
	ready, cancel := context.WithTimeout(ctx, live.ReadyGrace)
	defer cancel()
	_ = s.Ready(ready)
	return ctx.Err()
}

// Ready implements live.Server.
func (s *server) Ready(ctx context.Context) error {
	return until(ctx, readyPoll, "wait until "+s.url+" is ready", s.ask("/readyz"))
}

func (s *server) ask(path string) func(context.Context) error {
	return func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
		if err != nil {
			return err
		}
		response, err := s.http.Do(r)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", path, response.Status)
		}
		return nil
	}
}

// URL implements live.Server.
func (s *server) URL() string { return s.url }

// AuditLog implements live.Server.
func (s *server) AuditLog() string { return s.file(auditLog) }

// LogFile implements live.Server.
func (s *server) LogFile() string { return s.file(logFile(unitAPIServer)) }

// SetEncryption implements live.Server.
func (s *server) SetEncryption(told live.Encryption) (hash string, err error) {
	text, err := encryptionText(told, s.resources)
	if err != nil {
		return "", err
	}
	return s.RollOut(text)
}

// RollOut implements live.Server: in the node the sockets are where the file says.
func (s *server) RollOut(file []byte) (hash string, err error) {
	if err := writeAtomically(s.file(encryptionFile), file); err != nil {
		return "", fmt.Errorf("encryption configuration: %w", err)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(file)), nil
}

// encryptionText is the EncryptionConfiguration that says what an API server is told, and nothing else: one with a provider whose
// plugin is held is not ready.
func encryptionText(told live.Encryption, resources []string) ([]byte, error) {
	e := told.Config(func(keyID string) string { return live.HostSocket(inNodeSocket, keyID) })
	e.Resources = resources
	if err := e.Validate(); err != nil {
		return nil, err
	}
	return e.YAML()
}

// writeAtomically puts a file in place in one step.
func writeAtomically(path string, content []byte) error {
	next := path + ".next"
	if err := os.WriteFile(next, content, 0o644); err != nil {
		return err
	}
	return os.Rename(next, path)
}
