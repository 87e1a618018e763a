package revision

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/operator/config"
)

// Data of a key's Secret.
const materialKey = "encryption.apiserver.operator.openshift.io-key"

// MaterialSize of keys that are made here: AES-256.
const MaterialSize = 32

// KeySecret is a key as an object; material is that of aescbc and aesgcm.
func KeySecret(c Component, k Key, material []byte) (*corev1.Secret, error) {
	s := &corev1.Secret{ObjectMeta: meta(c, KindKey, KeyName(c, k.ID)), Type: corev1.SecretTypeOpaque, Data: map[string][]byte{materialKey: material}}
	if err := checkMaterial(k.Type, material); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	if len(material) == 0 {
		s.Data[materialKey] = placeholder()
	}
	if k.Type == config.KMS {
		text, err := k.Plugin.APIServer()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		s.Data[pluginKey] = text
	}
	s.Finalizers = []string{Finalizer}
	Annotate(s, k, time.Time{}, nil)
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
	set(ModeAnnotation, string(k.Type))
	set(reasonAnnotation, k.Reason)
	set(KEKAnnotation, k.KEK)
	set(initialAnnotation, k.Initial)
	set(ConvergedKEKAnnotation, k.Converged.KEK)
	set(convergedSince, stamp(k.Converged.Since))
	switch {
	case !k.Migrated:
		set(migratedAnnotation, "")
		set(ResourcesAnnotation, "")
	case s.Annotations[migratedAnnotation] == "":
		set(migratedAnnotation, now.UTC().Format(time.RFC3339))
		set(ResourcesAnnotation, migratedResources(resources))
	}
}

// ReadKey is the opposite of KeySecret. Nothing is guessed: a key that is misread is data that is lost.
func ReadKey(s *corev1.Secret) (Key, []byte, error) {
	n, err := identify(s.ObjectMeta, KindKey, func(c Component, n int) string { return KeyName(c, uint64(n)) })
	if err != nil {
		return Key{}, nil, err
	}
	k := Key{ID: uint64(n), Type: config.Type(s.Annotations[ModeAnnotation]), Reason: s.Annotations[reasonAnnotation], Migrated: s.Annotations[migratedAnnotation] != "",
		KEK: s.Annotations[KEKAnnotation], Initial: s.Annotations[initialAnnotation], Converged: Convergence{KEK: s.Annotations[ConvergedKEKAnnotation]}}
	material := s.Data[materialKey]
	if bytes.Equal(material, placeholder()) {
		material = nil
	}
	if err := checkMaterial(k.Type, material); err != nil {
		return Key{}, nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	if k.Type == config.KMS {
		if k.Plugin, err = config.ReadAPIServer(s.Data[pluginKey]); err != nil {
			return Key{}, nil, fmt.Errorf("%s: data[%s]: %w", s.Name, pluginKey, err)
		}
	}
	if k.Converged.Since, err = unstamp(s.Annotations[convergedSince]); err != nil {
		return Key{}, nil, fmt.Errorf("%s: annotation %s: %w", s.Name, convergedSince, err)
	}
	return k, material, nil
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

// Parts of a key's Secret, in the shape that OpenShift's encryption controllers give it (library-go, pkg/operator/encryption/secrets).
const (
	// Finalizer keeps a key from being deleted by mistake. An operator removes it before it prunes the key.
	Finalizer = "encryption.apiserver.operator.openshift.io/deletion-protection"
	// ResourcesAnnotation has the resources that were migrated to the key.
	ResourcesAnnotation = "encryption.apiserver.operator.openshift.io/migrated-resources"

	pluginKey = "encryption.apiserver.operator.openshift.io-kms-plugin-config"
)

// placeholder is the key material of types without any: OpenShift writes 16 zeroes.
func placeholder() []byte { return make([]byte, 16) }

// migratedResources is the value of ResourcesAnnotation.
func migratedResources(resources []string) string {
	var all struct {
		Resources []schema.GroupResource `json:"resources"`
	}
	for _, r := range resources {
		all.Resources = append(all.Resources, schema.ParseGroupResource(r))
	}
	text, _ := json.Marshal(all) // texts can always be encoded
	return string(text)
}
