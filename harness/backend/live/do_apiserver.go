package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/harness/lifecycle/config"
	"github.com/kmsharness/kmsharness/harness/lifecycle/encryption"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Where an administrator keeps what plugins need to log in, and the one that every scenario finds there.
const (
	credentialNamespace = "openshift-config"
	credentialSecret    = "vault-approle"
)

// configure writes the cluster's APIServer configuration, as an administrator does. What comes of it is the operator's business: it
// returns at once.
func (e *Environment) configure(ctx context.Context, a scenario.Action) error {
	wanted, err := configured(a)
	if err != nil {
		return err
	}
	if err := e.writeSizes(ctx, append(scenario.DataSizes(), scenario.MaxObjectBytes)); err != nil {
		return err
	}
	e.pods.delay(e.lags(a))
	var refusal error
	err = e.persist(ctx, func(ctx context.Context, c *Client) error {
		_, refusal = c.Resource(apiServerConfigs()).Apply(ctx, cluster, wanted, metav1.ApplyOptions{FieldManager: "kmsharness", Force: true})
		if apierrors.IsInvalid(refusal) || apierrors.IsBadRequest(refusal) {
			return nil
		}
		return refusal
	})
	switch refused := a.Text("expect") == scenario.OutcomeRefused; {
	case err != nil:
		return fmt.Errorf("write the APIServer configuration: %w", err)
	case refused && refusal == nil:
		return errors.New("write the APIServer configuration: the API took it, expected that it refuses")
	case !refused && refusal != nil:
		return fmt.Errorf("write the APIServer configuration: %w", refusal)
	case refused:
		return nil
	}
	e.mu.Lock()
	e.encryption = encryption.Type(a.Text("type"))
	e.mu.Unlock()
	e.recordExpected()
	return nil
}

// lags are those of an action, by node: one for all, or one for each. Without any nothing is late.
func (e *Environment) lags(a scenario.Action) map[string]time.Duration {
	lags, one := maps.Clone(a.Durations("lag")), a.Duration("lag")
	if one == 0 {
		return lags
	}
	lags = map[string]time.Duration{}
	for _, name := range e.Nodes() {
		lags[name] = one
	}
	return lags
}

// configured is the object that an action asks for.
func configured(a scenario.Action) (*unstructured.Unstructured, error) {
	kind := a.Text("type")
	if kind != string(encryption.KMS) {
		return apiServerConfig(kind), nil
	}
	for _, p := range config.Providers() {
		section, written := a.Params[p.Section].(map[string]any)
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
	u := apiServerConfig(string(encryption.KMS))
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

// prepareOperator makes the namespaces of an operator and the credentials that plugins refer to, and asks for clear text.
func (c *Client) prepareOperator(ctx context.Context) error {
	for _, name := range []string{credentialNamespace, keyNamespace} {
		_, err := c.Resource(namespaceObjects()).Create(ctx, newObject("v1", "Namespace", name, nil), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	s := newObject("v1", "Secret", credentialSecret, object{"stringData": object{"role-id": "role", "secret-id": "secret"}})
	_, err := c.Resource(secretObjects()).Namespace(credentialNamespace).Create(ctx, s, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the credentials of plugins: %w", err)
	}
	return c.configureEncryption(ctx, string(encryption.Identity))
}
