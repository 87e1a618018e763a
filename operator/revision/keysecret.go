package revision

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kmsharness/kmsharness/operator/config"
)

// Data of a key's Secret.
const (
	materialKey = "encryption.apiserver.operator.openshift.io-key"
	pluginKey   = "kms-plugin"
)

// MaterialSize of keys that are made here: AES-256.
const MaterialSize = 32

// KeySecret is a key as an object; material is that of aescbc and aesgcm.
func KeySecret(c Component, k Key, material []byte) (*corev1.Secret, error) {
	s := &corev1.Secret{ObjectMeta: meta(c, KindKey, KeyName(c, k.ID)), Type: corev1.SecretTypeOpaque, Data: map[string][]byte{}}
	if err := checkMaterial(k.Type, material); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	if len(material) > 0 {
		s.Data[materialKey] = material
	}
	if k.Type == config.KMS {
		text, err := json.Marshal(k.Plugin)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		s.Data[pluginKey] = text
	}
	Annotate(s, k, time.Time{}, nil)
	if c.upstream() {
		if err := asUpstream(s, k); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return s, nil
}

// Annotate puts what changes of a key into its Secret. now is when it was migrated, and resources what, if it says so for the first time.
func Annotate(s *corev1.Secret, k Key, now time.Time, resources []string) {
	set := func(name, value string) {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		if value == "" {
			delete(s.Annotations, name)
			return
		}
		s.Annotations[name] = value
	}
	set(modeAnnotation, string(k.Type))
	set(reasonAnnotation, k.Reason)
	upstream := Component(s.Labels[ComponentLabel]).upstream()
	quoted := quoted
	if upstream {
		quoted = func(text string) string { return text }
	}
	set(kekAnnotation, quoted(k.KEK))
	set(initialAnnotation, quoted(k.Initial))
	set(convergedKEK, quoted(k.Converged.KEK))
	set(convergedSince, stamp(k.Converged.Since))
	switch {
	case !k.Migrated:
		set(migratedAnnotation, "")
		set(ResourcesAnnotation, "")
	case s.Annotations[migratedAnnotation] == "":
		set(migratedAnnotation, now.UTC().Format(time.RFC3339))
		if upstream {
			set(ResourcesAnnotation, migratedResources(resources))
		}
	}
}

// ReadKey is the opposite of KeySecret. Nothing is guessed: a key that is misread is data that is lost.
func ReadKey(s *corev1.Secret) (Component, Key, []byte, error) {
	fail := func(format string, args ...any) (Component, Key, []byte, error) {
		return "", Key{}, nil, fmt.Errorf("%s: "+format, append([]any{s.Name}, args...)...)
	}
	c, n, err := identify(s.ObjectMeta, KindKey, func(c Component, n int) string { return KeyName(c, uint64(n)) })
	if err != nil {
		return "", Key{}, nil, err
	}
	k := Key{ID: uint64(n), Type: config.Type(s.Annotations[modeAnnotation]), Reason: s.Annotations[reasonAnnotation], Migrated: s.Annotations[migratedAnnotation] != ""}
	material, unquoted := s.Data[materialKey], unquoted
	if c.upstream() {
		unquoted = func(text string) (string, error) { return text, nil }
		if material, k.Plugin, err = fromUpstream(s, k.Type); err != nil {
			return fail("%w", err)
		}
	}
	if err := checkMaterial(k.Type, material); err != nil {
		return fail("%w", err)
	}
	if k.Type == config.KMS && !c.upstream() {
		if err := json.Unmarshal(s.Data[pluginKey], &k.Plugin); err != nil {
			return fail("data[%s]: %w", pluginKey, err)
		}
	}
	for name, value := range map[string]*string{kekAnnotation: &k.KEK, initialAnnotation: &k.Initial, convergedKEK: &k.Converged.KEK} {
		if *value, err = unquoted(s.Annotations[name]); err != nil {
			return fail("annotation %s: %w", name, err)
		}
	}
	if k.Converged.Since, err = unstamp(s.Annotations[convergedSince]); err != nil {
		return fail("annotation %s: %w", convergedSince, err)
	}
	return c, k, material, nil
}

// checkMaterial says whether a type can have the key material.
func checkMaterial(t config.Type, material []byte) error {
	want := 0
	switch t {
	case config.AESCBC, config.AESGCM:
		want = MaterialSize
	case config.Identity, config.KMS:
	default:
		return fmt.Errorf("type %q is unknown: expected identity, aescbc, aesgcm or KMS", t)
	}
	if len(material) != want {
		return fmt.Errorf("type %s with %d bytes of key material: expected %d", t, len(material), want)
	}
	return nil
}

// quoted keeps texts of plugins apart from what annotations may hold; empty stays empty.
func quoted(text string) string {
	if text == "" {
		return ""
	}
	return strconv.QuoteToASCII(text)
}

func unquoted(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	return strconv.Unquote(text)
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func unstamp(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339Nano, text)
}
