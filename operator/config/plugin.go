package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Plugin is the configuration of one KMS plugin.
type Plugin struct {
	// Provider is a name of the table: "Vault", "AWS".
	Provider string
	// Image of the plugin; empty if the section names none.
	Image string
	// settings in canonical form: sorted JSON of path to value. A string, so that plugins can be compared.
	settings string
	// Content is a hash over the content of Credentials, for telling one content from another; empty: the plugin has no credentials, or
	// some of them are missing or were never observed. Keys have none: it belongs to a revision of the plugin configuration.
	Content string
}

// Settings are the values by their path in the provider's section: "authentication.appRole.secret.name".
func (p Plugin) Settings() map[string]string {
	all := map[string]string{}
	if p.settings != "" {
		// It was made by newPlugin, so it is an object of strings.
		_ = json.Unmarshal([]byte(p.settings), &all)
	}
	return all
}

// Credentials are the Secrets and ConfigMaps in openshift-config without which the plugin cannot start, sorted.
func (p Plugin) Credentials() []Reference {
	provider, _ := providerNamed(p.Provider)
	settings := p.Settings()
	var all []Reference
	for _, f := range provider.Fields {
		if f.Refers != "" && settings[f.Path] != "" {
			all = append(all, Reference{Kind: f.Refers, Name: settings[f.Path]})
		}
	}
	slices.SortFunc(all, func(a, b Reference) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// WithContent is the plugin with the credentials of these contents, hashes by reference. Without one of them Content is empty.
func (p Plugin) WithContent(contents map[Reference]string) Plugin {
	p.Content = ""
	all := map[string]string{}
	for _, r := range p.Credentials() {
		content, there := contents[r]
		if !there {
			return p
		}
		all[r.String()] = content
	}
	if len(all) > 0 {
		p.Content = hash("", "", all)
	}
	return p
}

// WithoutContent is the plugin as the configuration has it, whatever the content of its credentials.
func (p Plugin) WithoutContent() Plugin {
	p.Content = ""
	return p
}

// Reference is an object in openshift-config.
type Reference struct{ Kind, Name string }

func (r Reference) String() string { return r.Kind + "/" + r.Name }

// newPlugin validates a section by the table.
func newPlugin(p Provider, at string, settings map[string]string) (Plugin, error) {
	for _, path := range slices.Sorted(maps.Keys(settings)) {
		if !slices.ContainsFunc(p.Fields, func(f Field) bool { return f.Path == path }) {
			return Plugin{}, fmt.Errorf("%s.%s: provider %s has no such setting: expected %s", at, path, p.Name, p.paths())
		}
	}
	for _, f := range p.Fields {
		if err := f.validate(settings[f.Path]); err != nil {
			return Plugin{}, fmt.Errorf("%s.%s: %w", at, f.Path, err)
		}
	}
	image := settings[ImageSetting]
	settings = maps.Clone(settings)
	delete(settings, ImageSetting)
	canonical, err := json.Marshal(settings) // keys are sorted
	if err != nil {
		return Plugin{}, fmt.Errorf("%s: %w", at, err)
	}
	return Plugin{Provider: p.Name, Image: image, settings: string(canonical)}, nil
}

// NewPlugin is a plugin of settings by their paths, as Plugin.Settings has them.
func NewPlugin(provider, image string, settings map[string]string) (Plugin, error) {
	known, ok := providerNamed(provider)
	if !ok {
		return Plugin{}, fmt.Errorf("provider %q is unknown: expected one of %s", provider, names())
	}
	known.Fields = slices.DeleteFunc(known.Fields, func(f Field) bool { return f.Path == ImageSetting }) // a plugin has it apart
	p, err := newPlugin(known, provider, settings)
	if err == nil {
		p.Image = image
	}
	return p, err
}

// KeyName is what the KMS calls the key, for people: the settings that choose it.
func (p Plugin) KeyName() string {
	provider, _ := providerNamed(p.Provider)
	settings := p.Settings()
	var words []string
	for _, f := range provider.Fields {
		if v := settings[f.Path]; f.Key && v != "" {
			words = append(words, v)
		}
	}
	return strings.Join(words, " ")
}

// readPlugin takes the annotation before the field: see Annotation.
func readPlugin(a *configv1.APIServer) (Plugin, error) {
	kms := a.Spec.Encryption.KMS
	text, annotated := a.Annotations[Annotation]
	stands := kms.Vault.VaultAddress == Placeholder
	switch {
	case annotated && !stands:
		return Plugin{}, fmt.Errorf("metadata.annotations[%s] names a provider, and spec.encryption.kms another one: expected one of them, or %s as its vaultAddress", Annotation, Placeholder)
	case annotated:
		return readAnnotation(text)
	case stands:
		return Plugin{}, fmt.Errorf("spec.encryption.kms.vault.vaultAddress is %s, which stands for a provider in metadata.annotations[%s], and there is none", Placeholder, Annotation)
	case kms.Type == "":
		return Plugin{}, fmt.Errorf("spec.encryption.kms.type: expected a provider with type KMS: Vault")
	case kms.Type != configv1.VaultKMSProvider:
		return Plugin{}, fmt.Errorf("spec.encryption.kms.type: %q is unknown: expected Vault; others come in metadata.annotations[%s]", kms.Type, Annotation)
	}
	section, err := json.Marshal(kms.Vault)
	if err != nil {
		return Plugin{}, fmt.Errorf("spec.encryption.kms.vault: %w", err)
	}
	return readSection("Vault", "spec.encryption.kms.vault", section)
}

// APIServer is a plugin's configuration as OpenShift's encryption controllers store it: an APIServer that has nothing but spec.encryption.
func (p Plugin) APIServer() ([]byte, error) {
	section, settings := map[string]any{}, p.Settings()
	if p.Image != "" {
		settings[ImageSetting] = p.Image
	}
	for path, value := range settings {
		if err := unstructured.SetNestedField(section, value, strings.Split(path, ".")...); err != nil {
			return nil, fmt.Errorf("setting %s of provider %s: %w", path, p.Provider, err)
		}
	}
	a := &configv1.APIServer{TypeMeta: metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: "APIServer"}}
	if p.Provider != string(configv1.VaultKMSProvider) {
		if err := Annotate(a, p.Provider, section); err != nil {
			return nil, err
		}
		return json.Marshal(a)
	}
	a.Spec.Encryption.Type, a.Spec.Encryption.KMS.Type = configv1.EncryptionTypeKMS, configv1.VaultKMSProvider
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(section, &a.Spec.Encryption.KMS.Vault); err != nil {
		return nil, fmt.Errorf("settings of provider %s: %w", p.Provider, err)
	}
	return json.Marshal(a)
}

// ReadAPIServer is the opposite of APIServer. It does not need spec.encryption.type.
func ReadAPIServer(text []byte) (Plugin, error) {
	var a configv1.APIServer
	if err := json.Unmarshal(text, &a); err != nil {
		return Plugin{}, fmt.Errorf("expected an APIServer object with spec.encryption.kms: %w", err)
	}
	a.Spec.Encryption.Type = configv1.EncryptionTypeKMS
	w, err := Read(&a, Options{})
	return w.KMS, err
}
