package remotekms

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
)

// state is the state file. It holds keys in clear: they protect test data only.
type state struct {
	Version int                         `json:"version"`
	Keys    map[string]keyring.Snapshot `json:"keys"`
	Rules   []Rule                      `json:"rules"`
}

const stateVersion = 1

func (k *KMS) load() error {
	if k.o.StateFile == "" {
		return nil
	}
	b, err := os.ReadFile(k.o.StateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the state of the KMS: %w", err)
	}
	var s state
	if err := json.Unmarshal(b, &s); err != nil || s.Version != stateVersion {
		return fmt.Errorf("state file %s is not one of this KMS (version %d): move it away to begin with new keys", k.o.StateFile, stateVersion)
	}
	for name, snapshot := range s.Keys {
		if k.rings[name], err = keyring.Restore(rand.Reader, snapshot); err != nil {
			return fmt.Errorf("state file %s: key %.64q: %w", k.o.StateFile, name, err)
		}
	}
	k.rules = s.Rules
	return nil
}

func (k *KMS) save() error {
	if k.o.StateFile == "" {
		return nil
	}
	s := state{Version: stateVersion, Keys: map[string]keyring.Snapshot{}, Rules: k.Rules()}
	for name, ring := range k.rings { // under k.change, nobody else writes the map
		s.Keys[name] = ring.Snapshot()
	}
	b, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode the state of the KMS: %w", err)
	}
	if err := atomicfile.Write(k.o.StateFile, b, 0o600); err != nil {
		return fmt.Errorf("save the state of the KMS: %w", err)
	}
	return nil
}
