package config

import (
	"encoding/json"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// APIServer is a plugin's configuration as OpenShift's encryption controllers store it: an APIServer that has nothing but spec.encryption.
func (p Plugin) APIServer() ([]byte, error) {
	section, settings := map[string]any{}, p.Settings()
	if p.Image != "" {
		settings[imageSetting] = p.Image
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
