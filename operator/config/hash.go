package config

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"strings"
)

// HashLength is what the API demands of the hash of a pre-flight check (status.encryptionStatus.preflight).
const HashLength = 8

// Hash tells plugin configurations apart: it changes with every setting that the plugin sees, its image included, and with nothing
// else. Empty for types without a plugin.
func (w Wanted) Hash() string {
	if w.Type != KMS {
		return ""
	}
	return hash(w.KMS.Provider, w.KMS.Image, w.KMS.Settings())
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
