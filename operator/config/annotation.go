package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
)

// Annotation of the APIServer configuration holds what spec.encryption.kms would, for a provider that the API does not know:
//
//	{"type": "AWS", "aws": {"keyARN": "arn:aws:kms:…", "region": "us-east-1"}}
//
// The API insists on a Vault section with type KMS. Its vaultAddress must be Placeholder, so that nobody believes in two providers at
// once, and so that a lost annotation is noticed.
const Annotation = "kmsharness.io/kms"

// Placeholder is the address in a Vault section that means nothing.
const Placeholder = "https://see-annotation.kmsharness.invalid"

// readAnnotation reads one object with a type and the section that belongs to it, and nothing else.
func readAnnotation(text string) (Plugin, error) {
	at := "metadata.annotations[" + Annotation + "]"
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	var object map[string]json.RawMessage
	if err := decoder.Decode(&object); err != nil {
		return Plugin{}, fmt.Errorf("%s: expected a JSON object: %w", at, err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return Plugin{}, fmt.Errorf("%s: expected one JSON object, and there is something after it", at)
	}
	var name string
	if err := json.Unmarshal(object["type"], &name); err != nil {
		return Plugin{}, fmt.Errorf("%s.type: expected one of %s", at, names())
	}
	p, ok := providerNamed(name)
	if !ok {
		return Plugin{}, fmt.Errorf("%s.type: %q is unknown: expected one of %s", at, name, names())
	}
	for key := range object {
		if key != "type" && key != p.Section {
			return Plugin{}, fmt.Errorf("%s.%s: expected nothing but type and %s for provider %s", at, key, p.Section, name)
		}
	}
	return readSection(name, at+"."+p.Section, object[p.Section])
}

// readSection reads the settings of a provider.
func readSection(name, at string, section json.RawMessage) (Plugin, error) {
	p, ok := providerNamed(name)
	if !ok {
		return Plugin{}, fmt.Errorf("%s: provider %q is unknown: expected one of %s", at, name, names())
	}
	if len(section) == 0 {
		return Plugin{}, fmt.Errorf("%s: expected the settings of provider %s", at, name)
	}
	settings, err := flatten(section)
	if err != nil {
		return Plugin{}, fmt.Errorf("%s: %w", at, err)
	}
	return newPlugin(p, at, settings)
}

// Annotate puts a provider into an APIServer configuration of type KMS, the placeholder included. section is in the form of the API.
func Annotate(a *configv1.APIServer, provider string, section map[string]any) error {
	p, ok := providerNamed(provider)
	if !ok {
		return fmt.Errorf("provider %q is unknown: expected one of %s", provider, names())
	}
	text, err := json.Marshal(map[string]any{"type": provider, p.Section: section})
	if err != nil {
		return fmt.Errorf("provider %s: %w", provider, err)
	}
	if a.Annotations == nil {
		a.Annotations = map[string]string{}
	}
	a.Annotations[Annotation] = string(text)
	a.Spec.Encryption = configv1.APIServerEncryption{Type: configv1.EncryptionTypeKMS, KMS: stub()}
	return nil
}

// stub is a Vault section that the CRD accepts.
func stub() configv1.KMSPluginConfig {
	return configv1.KMSPluginConfig{Type: configv1.VaultKMSProvider, Vault: configv1.VaultKMSPluginConfig{
		KMSPluginImage: "registry.kmsharness.invalid/none@sha256:" + zeroes, VaultAddress: Placeholder, VaultKeyPath: "none/keys/none",
		Authentication: configv1.VaultAuthentication{Type: configv1.VaultAuthenticationTypeAppRole,
			AppRole: configv1.VaultAppRoleAuthentication{Secret: configv1.VaultSecretReference{Name: "none"}}},
	}}
}

const zeroes = "0000000000000000000000000000000000000000000000000000000000000000"

// flatten makes paths of nested objects: {"a": {"b": "x"}} is a.b = x. Values are texts; an empty one is as good as none.
func flatten(section json.RawMessage) (map[string]string, error) {
	var object map[string]any
	if err := json.Unmarshal(section, &object); err != nil {
		return nil, fmt.Errorf("expected a JSON object: %w", err)
	}
	out := map[string]string{}
	return out, flattenInto(out, "", object)
}

func flattenInto(out map[string]string, prefix string, object map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(object)) { // of two mistakes the same one is reported each time
		path := prefix + key
		switch v := object[key].(type) {
		case map[string]any:
			if err := flattenInto(out, path+".", v); err != nil {
				return err
			}
		case string:
			if v != "" {
				out[path] = v
			}
		case nil:
		default:
			return fmt.Errorf("%s: expected a text, got %v", path, v)
		}
	}
	return nil
}
