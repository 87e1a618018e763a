package revision

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// configKey is the EncryptionConfiguration in the Secret.
const configKey = "encryption-config"

// ConfigSecret is a revision as an object: a file for API servers, and the keys in it.
func ConfigSecret(c Component, r Config, f File) (*corev1.Secret, error) {
	s := &corev1.Secret{ObjectMeta: numbered(c, KindConfig, ConfigName(c, r.Revision), r.Revision), Type: corev1.SecretTypeOpaque}
	text, err := f.YAML(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	s.Annotations[keysAnnotation] = formatIDs(r.Keys)
	s.Data = map[string][]byte{configKey: text}
	return s, nil
}

// ReadConfig is the opposite of ConfigSecret. It gives the file, too. Keys that the file does not name in the same order are an error:
// one of the two was edited.
func ReadConfig(s *corev1.Secret) (Config, []byte, error) {
	n, err := identify(s.ObjectMeta, KindConfig, ConfigName)
	if err != nil {
		return Config{}, nil, err
	}
	keys, err := parseIDs(s.Annotations[keysAnnotation])
	if err != nil {
		return Config{}, nil, fmt.Errorf("%s: annotation %s: %w", s.Name, keysAnnotation, err)
	}
	text := s.Data[configKey]
	inFile, plainAt, err := KeysInFile(text)
	if err != nil {
		return Config{}, nil, fmt.Errorf("%s: data[%s]: %w", s.Name, configKey, err)
	}
	if !fits(keys, inFile, plainAt) {
		return Config{}, nil, fmt.Errorf("%s: annotation %s says keys %s, and data[%s] has others: expected the same order", s.Name, keysAnnotation, formatIDs(keys), configKey)
	}
	return Config{Revision: n, Keys: keys}, text, nil
}

// fits: identity keys are in the file as identity and have no name there.
func fits(keys, inFile []uint64, plainAt int) bool {
	named := slices.DeleteFunc(slices.Clone(keys), func(id uint64) bool { return !slices.Contains(inFile, id) })
	if !slices.Equal(named, inFile) || plainAt < 0 {
		return false
	}
	writesPlain := len(keys) == 0 || !slices.Contains(inFile, keys[0])
	return writesPlain == (plainAt == 0)
}

func formatIDs(ids []uint64) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatUint(id, 10)
	}
	return strings.Join(texts, ",")
}

func parseIDs(text string) ([]uint64, error) {
	var ids []uint64
	for word := range strings.SplitSeq(text, ",") {
		if word == "0" {
			ids = append(ids, Plain)
			continue
		}
		id, err := ParseKeyID(word)
		if err != nil {
			return nil, err
		}
		if slices.Contains(ids, id) {
			return nil, fmt.Errorf("keyID %d is there twice", id)
		}
		ids = append(ids, id)
	}
	return ids, nil
}
