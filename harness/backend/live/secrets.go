package live

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/operator/encryption"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Where an operator keeps the keys that API servers hold themselves. The secrets are encrypted like all others: the API servers
// read the keys from their configuration files.
const (
	keyPrefix = "encryption-key-"
	keyField  = "encryption.apiserver.operator.openshift.io-key"
	keyMode   = "encryption.apiserver.operator.openshift.io/mode"
	keyLabel  = "encryption.apiserver.operator.openshift.io/component"
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
		if err := sw.e.persist(ctx, func(ctx context.Context, c *cluster.Client) error { return keepKey(ctx, c, sw.e.component(), p, key) }); err != nil {
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
func keepKey(ctx context.Context, c *cluster.Client, component string, p encryption.Provider, key []byte) error {
	if err := c.Ensure(ctx, cluster.NamespaceObjects(), cluster.NewObject("v1", "Namespace", revision.Namespace, nil)); err != nil {
		return err
	}
	s := keySecret(component, p, key)
	if err := c.Remove(ctx, cluster.SecretObjects(), revision.Namespace, s.GetName()); err != nil {
		return err
	}
	_, err := c.Resource(cluster.SecretObjects()).Namespace(revision.Namespace).Create(ctx, s, metav1.CreateOptions{})
	return err
}

func keySecret(component string, p encryption.Provider, key []byte) *unstructured.Unstructured {
	s := cluster.NewObject("v1", "Secret", keyPrefix+component+"-"+p.Name(), cluster.Object{"data": cluster.Object{keyField: base64.StdEncoding.EncodeToString(key)}})
	s.SetLabels(map[string]string{keyLabel: component, cluster.DataLabel: "true"})
	s.SetAnnotations(map[string]string{keyMode: string(p.Type)})
	return s
}
