package revision

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/config"
)

type Scheme string

// Schemes of sockets.
const (
	// ByKey is kms-{keyID}.sock. A plugin with other settings for the same key listens at the same socket.
	ByKey Scheme = "key"
	// ByHash is kms-<config-hash>.sock. Plugins of two configurations can run side by side, so a change of any setting is a change of key.
	// The content of credentials is not a setting.
	ByHash Scheme = "hash"
)

// Socket is the endpoint of a plugin below dir.
func (s Scheme) Socket(dir string, p Plugin) string {
	return contract.SocketPath(dir, s.Name(p))
}

// Name is what a socket is called after: the keyID, or the hash of the configuration. Reporters call the plugin by it.
func (s Scheme) Name(p Plugin) string {
	if s == ByHash {
		return config.Wanted{Type: config.KMS, KMS: p.Config.WithoutContent()}.Hash()
	}
	return strconv.FormatUint(p.KeyID, 10)
}

// KeyOf is the ID of the key whose plugin goes by a name. A configuration that comes back is that of another key, with the same hash:
// the newest of them is meant, because the plugins of those before have ended when it is made.
func (s Scheme) KeyOf(keys []Key, name string) (id uint64, ok bool) {
	if s != ByHash {
		id, err := parseID(name)
		return id, err == nil
	}
	for _, k := range keys {
		if k.Type == config.KMS && k.ID >= id && s.Name(Plugin{KeyID: k.ID, Config: k.Plugin}) == name {
			id, ok = k.ID, true
		}
	}
	return id, ok
}

// Socket is what the name of a socket says: a keyID or a hash. They cannot be confused: a hash is never digits alone.
type Socket struct {
	KeyID uint64
	Hash  string
}

// ParseSocket reads an endpoint of either scheme.
func ParseSocket(endpoint string) (Socket, error) {
	name, err := contract.KeyIDOfSocket(endpoint)
	if err != nil {
		return Socket{}, err
	}
	if strings.Trim(name, "0123456789") == "" {
		id, err := parseID(name)
		if err != nil {
			return Socket{}, fmt.Errorf("socket %q: %w", endpoint, err)
		}
		return Socket{KeyID: id}, nil
	}
	if len(name) != config.HashLength {
		return Socket{}, fmt.Errorf("socket %q: %q is neither a keyID nor a hash of %d characters", endpoint, name, config.HashLength)
	}
	return Socket{Hash: name}, nil
}

// parseID reads a keyID in the one way in which it is written.
func parseID(text string) (uint64, error) {
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil || id == Plain || strconv.FormatUint(id, 10) != text {
		return 0, fmt.Errorf("keyID %q: expected a number from 1, without leading zeros", text)
	}
	return id, nil
}
