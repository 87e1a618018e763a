package live

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/operator/encryption"
)

// Where an operator keeps the keys that API servers hold themselves. The secrets are encrypted like all others: the API servers
// read the keys from their configuration files.
const (
	keyNamespace = "openshift-config-managed"
	keyPrefix    = "encryption-key-"
	keyField     = "encryption.apiserver.operator.openshift.io-key"
	keyMode      = "encryption.apiserver.operator.openshift.io/mode"
	keyLabel     = "encryption.apiserver.operator.openshift.io/component"
)

// makeKeys makes the keys of a list that there are none of yet. One that was used before is the same as then.
func (sw *encryptionSwitch) makeKeys(ctx context.Context, list encryption.List) error {
	for _, p := range list {
		sw.e.mu.Lock()
		known := sw.e.configured.Keys[p] != nil
		sw.e.mu.Unlock()
		if !p.Type.Local() || known {
			continue
		}
		key, err := newKey()
		if err != nil {
			return err
		}
		if err := sw.e.data.persist(ctx, func(ctx context.Context, c *Client) error { return c.keepKey(ctx, sw.e.component(), p, key) }); err != nil {
			return fmt.Errorf("keep the key of %s: %w", p.Name(), err)
		}
		sw.e.mu.Lock()
		sw.e.configured.Keys = maps.Clone(sw.e.configured.Keys)
		sw.e.configured.Keys[p] = key
		sw.e.mu.Unlock()
	}
	return nil
}

// keepKey writes the secret of a key. One that a scenario before has left is not of use any more.
func (c *Client) keepKey(ctx context.Context, component string, p encryption.Provider, key []byte) error {
	_, err := c.Resource(namespaceObjects()).Create(ctx, newObject("v1", "Namespace", keyNamespace, nil), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	s := keySecret(component, p, key)
	if err := c.remove(ctx, secretObjects(), keyNamespace, s.GetName()); err != nil {
		return err
	}
	_, err = c.Resource(secretObjects()).Namespace(keyNamespace).Create(ctx, s, metav1.CreateOptions{})
	return err
}

func keySecret(component string, p encryption.Provider, key []byte) *unstructured.Unstructured {
	s := newObject("v1", "Secret", keyPrefix+component+"-"+p.Name(), object{"data": object{keyField: base64.StdEncoding.EncodeToString(key)}})
	s.SetLabels(map[string]string{keyLabel: component, dataLabel: "true"})
	s.SetAnnotations(map[string]string{keyMode: string(p.Type)})
	return s
}

func namespaceObjects() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
}
