package kmsplugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kmsharness/kmsharness/conformance/plugin"
)

// KMS is a key management service in a folder, which plugin and hooks share: the KEKs one after another in one file, and the way in which the
// service fails in another.
type KMS struct {
	dir string
	// cached makes the plugin need no service once it has the keys: it works whatever the mode is.
	cached bool
}

// Files of a KMS.
const (
	keysFile = "keys"
	modeFile = "mode"
	logFile  = "log-ins" // a byte for each
)

// slowBy is how long each request takes in plugin.ModeSlow.
const slowBy = 4 * time.Second

// OpenKMS opens the KMS in a folder, and makes its first KEK if there is none.
func OpenKMS(dir string) (*KMS, error) {
	k := &KMS{dir: dir}
	_, err := os.Stat(filepath.Join(dir, keysFile))
	if errors.Is(err, fs.ErrNotExist) {
		return k, k.Rotate()
	}
	return k, err
}

// Rotate adds a KEK, which is used from now on.
func (k *KMS) Rotate() error { return k.add(keysFile, random(keyBytes)) }

// LogIn gives the plugin a session.
func (k *KMS) LogIn() error { return k.add(logFile, []byte("1")) }

// LogIns is how many there were.
func (k *KMS) LogIns() (int, error) {
	data, err := os.ReadFile(filepath.Join(k.dir, logFile))
	return len(data), err
}

// add appends data to a file of the KMS.
func (k *KMS) add(file string, data []byte) error {
	f, err := os.OpenFile(filepath.Join(k.dir, file), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("change the KMS: %w", err)
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// Keys returns the KEKs, the one in use last. An error is a gRPC status.
func (k *KMS) Keys() ([][]byte, error) {
	data, err := os.ReadFile(filepath.Join(k.dir, keysFile))
	if err != nil {
		return nil, status.Errorf(codes.Internal, "read the KEKs: %v", err)
	}
	if len(data) == 0 || len(data)%keyBytes != 0 {
		return nil, status.Errorf(codes.Internal, "the KEKs have %d bytes: expected a multiple of %d", len(data), keyBytes)
	}
	return slices.Collect(slices.Chunk(data, keyBytes)), nil
}

// SetMode makes the KMS fail in a mode of package plugin, or slow. "restore" makes it work.
func (k *KMS) SetMode(mode string) error {
	return os.WriteFile(filepath.Join(k.dir, modeFile), []byte(mode), 0o600)
}

// Mode is how the KMS fails; empty if it works.
func (k *KMS) Mode() string {
	data, err := os.ReadFile(filepath.Join(k.dir, modeFile))
	if mode := strings.TrimSpace(string(data)); err == nil && mode != "restore" && !k.cached {
		return mode
	}
	return ""
}

// Problem is what the plugin's own check of the KMS finds; nil if the KMS works.
func (k *KMS) Problem() error {
	switch k.Mode() {
	case plugin.ModeFail:
		return status.Error(codes.Unavailable, "the KMS cannot be reached")
	case plugin.ModeHang, plugin.ModeSlow:
		return status.Error(codes.Unavailable, "the KMS does not answer in time")
	case plugin.ModeRefuse:
		return status.Error(codes.PermissionDenied, "the KMS refuses the plugin's credentials")
	case plugin.ModeLoseKey:
		return status.Error(codes.FailedPrecondition, "the key is disabled in the KMS")
	}
	return nil
}

// Use is one request to the KMS: it fails, waits or succeeds.
func (k *KMS) Use(ctx context.Context) error {
	switch k.Mode() {
	case plugin.ModeHang:
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	case plugin.ModeSlow:
		if waitFor(ctx, slowBy); ctx.Err() != nil {
			return status.FromContextError(ctx.Err()).Err()
		}
		return nil
	}
	return k.Problem()
}
