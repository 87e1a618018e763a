package operand

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/encryption"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// CredentialSecret is what plugins need to log in, in the namespace operator.Credentials. Every scenario with an operator finds it there.
const CredentialSecret = "vault-approle"

// CredentialContent is a content of CredentialSecret, by number from 0: what every scenario finds there.
func CredentialContent(number int) []byte {
	if number == 0 {
		return []byte("{}")
	}
	return fmt.Appendf(nil, `{"secret-id":"secret-%d"}`, number)
}

// Wanted is what an administrator writes to ask for a type of encryption.
type Wanted struct {
	Configuration *unstructured.Unstructured
	// settings is the VaultKMSConfig to which the configuration refers, and image what an operator of Vault's writes into its status; nil: it refers to none.
	settings *unstructured.Unstructured
	image    string
}

// Desired is what an action asks for, in a cluster with a variant of the CRDs.
func Desired(a *scenario.APIServer, variant string) (Wanted, error) {
	configuration, err := configurationOf(a)
	if err != nil || variant != history.CRDsVaultConfig || a.Sections["vault"] == nil {
		return Wanted{Configuration: configuration}, err
	}
	settings, image, err := config.Refer(configuration.Object, cr)
	return Wanted{Configuration: configuration, settings: &unstructured.Unstructured{Object: settings}, image: image}, err
}

// Write applies it, the settings before what refers to them. The error is that of the API.
func (w Wanted) Write(ctx context.Context, c dynamic.Interface) error {
	options := metav1.ApplyOptions{FieldManager: "kmsharness", Force: true}
	if w.settings != nil {
		client, status := c.Resource(config.VaultKMSConfigs()), w.settings.DeepCopy()
		unstructured.RemoveNestedField(status.Object, "spec")
		if w.image != "" {
			status.Object["status"] = map[string]any{config.ImageSetting: w.image}
		}
		if _, err := client.Apply(ctx, cr, w.settings, options); err != nil {
			return err
		}
		if _, err := client.ApplyStatus(ctx, cr, status, metav1.ApplyOptions{FieldManager: "vault-operator", Force: true}); err != nil {
			return err
		}
	}
	_, err := c.Resource(revision.Configurations()).Apply(ctx, cr, w.Configuration, options)
	return err
}

// configurationOf is the APIServer configuration that an action asks for.
func configurationOf(a *scenario.APIServer) (*unstructured.Unstructured, error) {
	kind := a.Type
	if kind != string(encryption.KMS) {
		return APIServer(kind), nil
	}
	for _, p := range config.Providers() {
		section, written := a.Sections[p.Section]
		switch {
		case !written:
		case p.Section == "vault":
			return vaultConfig(section)
		default:
			return annotatedConfig(p.Name, section)
		}
	}
	return nil, fmt.Errorf("type KMS without a provider, expected the section of one")
}

// vaultConfig is the stand-in with settings of the scenario's own.
func vaultConfig(section map[string]any) (*unstructured.Unstructured, error) {
	u := APIServer(string(encryption.KMS))
	all, _, err := unstructured.NestedMap(u.Object, "spec", "encryption", "kms", "vault")
	if err != nil {
		return nil, fmt.Errorf("section vault: %w", err)
	}
	maps.Copy(all, section)
	return u, unstructured.SetNestedMap(u.Object, all, "spec", "encryption", "kms", "vault")
}

// annotatedConfig is one of a provider that the API does not know.
func annotatedConfig(provider string, section map[string]any) (*unstructured.Unstructured, error) {
	annotated := &configv1.APIServer{}
	if err := config.Annotate(annotated, provider, section); err != nil {
		return nil, err
	}
	vault := annotated.Spec.Encryption.KMS.Vault
	u, err := vaultConfig(map[string]any{"kmsPluginImage": vault.KMSPluginImage, "vaultAddress": vault.VaultAddress, "vaultKeyPath": vault.VaultKeyPath})
	if err == nil {
		u.SetAnnotations(annotated.Annotations)
	}
	return u, err
}

// APIServer is the cluster's APIServer configuration of a type. With KMS the API insists on a provider: its values are valid, and without an
// operator they mean nothing, since the fake plugins are configured by the harness.
func APIServer(kind string) *unstructured.Unstructured {
	spec := map[string]any{"type": kind}
	if kind == string(encryption.KMS) {
		spec["kms"] = map[string]any{"type": "Vault", "vault": map[string]any{
			"kmsPluginImage": "registry.example.com/kms/fake-kms-plugin@sha256:" + strings.Repeat("0", 64),
			"vaultAddress":   "https://vault.example.com:8200",
			"vaultKeyPath":   "transit/keys/kmsharness",
			"authentication": map[string]any{"type": "AppRole", "appRole": map[string]any{"secret": map[string]any{"name": CredentialSecret}}},
		}}
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "config.openshift.io/v1", "kind": "APIServer",
		"metadata": map[string]any{"name": cr}, "spec": map[string]any{"encryption": spec}}}
}

// Lags are how much later than the operator rolls them out revisions reach nodes, also those that come later by a name. Without any nothing is
// late.
func Lags(lag scenario.Lag, nodes []string) map[string]time.Duration {
	lags := map[string]time.Duration{}
	for _, name := range append(slices.Sorted(maps.Keys(lag.Nodes)), nodes...) {
		lags[name] = lag.Of(name)
	}
	return lags
}

// RemoteKey is what the remote KMS calls the key of a configuration: the same whenever the same key is chosen.
func RemoteKey(c config.Plugin) string {
	return "key-" + config.Wanted{Type: config.KMS, KMS: c}.KeyHash()
}
