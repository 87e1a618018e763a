package config_test

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/kmsharness/kmsharness/operator/config"
)

const digest = "registry.example.com/kms/vault@sha256:1111111111111111111111111111111111111111111111111111111111111111"

// vault is a configuration that the API server accepts.
func vault() *configv1.APIServer {
	a := &configv1.APIServer{}
	a.Spec.Encryption = configv1.APIServerEncryption{Type: configv1.EncryptionTypeKMS, KMS: configv1.KMSPluginConfig{Type: configv1.VaultKMSProvider, Vault: configv1.VaultKMSPluginConfig{
		KMSPluginImage: digest, VaultAddress: "https://vault.example.com:8200", VaultKeyPath: "transit/keys/openshift",
		Authentication: configv1.VaultAuthentication{Type: configv1.VaultAuthenticationTypeAppRole,
			AppRole: configv1.VaultAppRoleAuthentication{Secret: configv1.VaultSecretReference{Name: "approle"}}},
	}}}
	return a
}

// annotated asks for a provider that the API does not know.
func annotated(t *testing.T, provider string, section map[string]any) *configv1.APIServer {
	t.Helper()
	a := &configv1.APIServer{}
	if err := config.Annotate(a, provider, section); err != nil {
		t.Fatal(err)
	}
	return a
}

func typed(name configv1.EncryptionType) *configv1.APIServer {
	a := &configv1.APIServer{}
	a.Spec.Encryption.Type = name
	return a
}

const arn = "arn:aws:kms:us-east-1:123456789012:key/12345678-1234-1234-1234-123456789012"

func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		given       *configv1.APIServer
		want        config.Type
		provider    string
		credentials string
	}{
		"unset":    {typed(""), config.Identity, "", ""},
		"identity": {typed("identity"), config.Identity, "", ""},
		"aescbc":   {typed("aescbc"), config.AESCBC, "", ""},
		"aesgcm":   {typed("aesgcm"), config.AESGCM, "", ""},
		"Vault":    {vault(), config.KMS, "Vault", "Secret/approle"},
		"AWS":      {annotated(t, "AWS", map[string]any{"keyARN": arn, "region": "us-east-1"}), config.KMS, "AWS", ""},
		"Azure":    {annotated(t, "Azure", map[string]any{"keyVaultName": "vault-1", "keyName": "kek", "credentialsSecret": map[string]any{"name": "creds"}}), config.KMS, "Azure", "Secret/creds"},
		"GCP":      {annotated(t, "GCP", map[string]any{"keyName": "projects/p/locations/l/keyRings/r/cryptoKeys/k"}), config.KMS, "GCP", ""},
		"Thales": {annotated(t, "Thales", map[string]any{"p11LibraryPath": "/opt/p11.so", "keyLabel": "kek", "credentialsSecret": map[string]any{"name": "pin"}}),
			config.KMS, "Thales", "Secret/pin"},
	} {
		w, err := config.Read(c.given, config.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var credentials []string
		for _, r := range w.KMS.Credentials() {
			credentials = append(credentials, r.String())
		}
		if w.Type != c.want || w.KMS.Provider != c.provider || strings.Join(credentials, ",") != c.credentials {
			t.Errorf("%s: %+v, credentials %v", name, w, credentials)
		}
		if (w.KMS.Image == digest) != (c.provider == "Vault") {
			t.Errorf("%s: image %q", name, w.KMS.Image)
		}
		if w.Type != config.KMS {
			continue
		}
		text, err := w.KMS.APIServer()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if read, err := config.ReadAPIServer(text); err != nil || read != w.KMS {
			t.Errorf("%s: stored as %s, it is read as %+v, %v", name, text, read, err)
		}
	}
}

// A release from before KMS knows what it knew.
func TestBeforeKMS(t *testing.T) {
	older := config.Options{BeforeKMS: true}
	if w, err := config.Read(typed("aescbc"), older); err != nil || w.Type != config.AESCBC {
		t.Errorf("%+v, %v", w, err)
	}
	if _, err := config.Read(vault(), older); err == nil || !strings.Contains(err.Error(), "does not know KMS") {
		t.Errorf("%v", err)
	}
}

// TestInvalid: one line that names the place, whatever is wrong.
func TestInvalid(t *testing.T) {
	change := func(f func(*configv1.APIServer)) *configv1.APIServer { a := vault(); f(a); return a }
	note := func(text string) *configv1.APIServer {
		a := annotated(t, "AWS", nil)
		a.Annotations[config.Annotation] = text
		return a
	}
	for want, given := range map[string]*configv1.APIServer{
		"spec.encryption: there is no APIServer": nil,
		`spec.encryption.type: "secretbox"`:      typed("secretbox"),
		`spec.encryption.type: "kms"`:            typed("kms"),
		"spec.encryption.kms.type: expected":     typed("KMS"),
		"expected nothing with type aescbc":      change(func(a *configv1.APIServer) { a.Spec.Encryption.Type = "aescbc" }),
		`spec.encryption.kms.type: "AWS"`:        change(func(a *configv1.APIServer) { a.Spec.Encryption.KMS.Type = "AWS" }),
		`vault.vaultAddress: "http://v"`:         change(func(a *configv1.APIServer) { a.Spec.Encryption.KMS.Vault.VaultAddress = "http://v" }),
		`vault.vaultAddress: "https://u@v"`:      change(func(a *configv1.APIServer) { a.Spec.Encryption.KMS.Vault.VaultAddress = "https://u@v" }),
		`vault.vaultAddress: "https://v/path"`:   change(func(a *configv1.APIServer) { a.Spec.Encryption.KMS.Vault.VaultAddress = "https://v/path" }),
		"vault.vaultAddress: expected a value":   change(func(a *configv1.APIServer) { a.Spec.Encryption.KMS.Vault.VaultAddress = "" }),
		`vault.vaultKeyPath: "/transit"`:         change(func(a *configv1.APIServer) { a.Spec.Encryption.KMS.Vault.VaultKeyPath = "/transit" }),
		`vault.kmsPluginImage: "vault:latest"`:   change(func(a *configv1.APIServer) { a.Spec.Encryption.KMS.Vault.KMSPluginImage = "vault:latest" }),
		`secret.name: "A B"`:                     change(func(a *configv1.APIServer) { a.Spec.Encryption.KMS.Vault.Authentication.AppRole.Secret.Name = "A B" }),
		"and spec.encryption.kms another one":    change(func(a *configv1.APIServer) { a.Annotations = map[string]string{config.Annotation: "{}"} }),
		"and there is none":                      change(func(a *configv1.APIServer) { a.Spec.Encryption.KMS.Vault.VaultAddress = config.Placeholder }),
		"expected a JSON object":                 note("AWS"),
		"there is something after it":            note(`{"type":"AWS"} {}`),
		".type: expected one of Vault, AWS":      note(`{}`),
		`.type: "IBM" is unknown`:                note(`{"type":"IBM"}`),
		".vault: expected nothing but type":      note(`{"type":"AWS","vault":{}}`),
		".aws: expected the settings":            note(`{"type":"AWS"}`),
		".aws: region: expected a text, got 1":   note(`{"type":"AWS","aws":{"region":1}}`),
		".aws.keyARN: expected a value":          note(`{"type":"AWS","aws":{"region":"us-east-1"}}`),
		`.aws.keyARN: "key"`:                     note(`{"type":"AWS","aws":{"keyARN":"key","region":"us-east-1"}}`),
		".aws.keyArn: provider AWS has no such":  note(`{"type":"AWS","aws":{"keyArn":"` + arn + `","region":"us-east-1"}}`),
		`.thales.algorithm: "rot13"`:             note(`{"type":"Thales","thales":{"p11LibraryPath":"/p","keyLabel":"k","algorithm":"rot13","credentialsSecret":{"name":"pin"}}}`),
		`.thales.p11LibraryPath: "p"`:            note(`{"type":"Thales","thales":{"p11LibraryPath":"p","keyLabel":"k","credentialsSecret":{"name":"pin"}}}`),
	} {
		w, err := config.Read(given, config.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, expected one line with %q", err, want)
		}
		if w != (config.Wanted{}) {
			t.Errorf("%s: an invalid configuration gave %+v", want, w)
		}
	}
}
