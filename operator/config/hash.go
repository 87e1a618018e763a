package config

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// HashLength is what the API demands of the hash of a pre-flight check (status.encryptionStatus.preflight).
const HashLength = 8

// contentSetting is Plugin.Content in a hash. No provider has a setting of this name.
const contentSetting = "credentialsContent"

// Hash tells plugin configurations apart: it changes with every setting that the plugin sees, its image and the content of its credentials
// included, and with nothing else. Empty for types without a plugin.
func (w Wanted) Hash() string {
	if w.Type != KMS {
		return ""
	}
	settings := w.KMS.Settings()
	if w.KMS.Content != "" {
		settings[contentSetting] = w.KMS.Content
	}
	return hash(w.KMS.Provider, w.KMS.Image, settings)
}

// KeyHash tells keys apart: as long as it stays, what was encrypted can be decrypted by a plugin of the new configuration, and nothing
// need be encrypted anew. Where that cannot be known, as with another address of a Vault, it changes.
func (w Wanted) KeyHash() string {
	if w.Type != KMS {
		return ""
	}
	provider, _ := providerNamed(w.KMS.Provider)
	settings, chosen := w.KMS.Settings(), map[string]string{}
	for _, f := range provider.Fields {
		if v := settings[f.Path]; f.Key && v != "" {
			chosen[f.Path] = v
		}
	}
	return hash(w.KMS.Provider, "", chosen)
}

// OtherKey reports whether it encrypts with another key.
func (w Wanted) OtherKey(than Wanted) bool {
	return w.Type != than.Type || w.KeyHash() != than.KeyHash()
}

// ContentHash tells the content of a Secret or ConfigMap from another one, without a trace of it: 16 hexadecimal digits of the SHA-256.
func ContentHash(data map[string][]byte) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(sum, "%d %s %d ", len(name), name, len(data[name]))
		sum.Write(data[name])
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// hash is letters and digits, so that it can be part of a socket's name, and never digits alone, which would be a keyID.
func hash(provider, image string, settings map[string]string) string {
	text, err := json.Marshal(settings) // keys are sorted; a map of strings can always be encoded
	if err != nil {
		return ""
	}
	for round := 0; ; round++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d\n%q\n%q\n%s", round, provider, image, text))
		h := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))[:HashLength]
		if strings.ContainsAny(h, "abcdefghijklmnopqrstuvwxyz") {
			return h
		}
	}
}
