package live

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	goyaml "go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kmstypes "k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/v2"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// leftOut stands where a secret was.
const leftOut = "(left out)"

// secretFields are the fields of encryption and kubeadm configurations whose value opens something. Lower case.
func secretFields() []string {
	return []string{"secret", "token", "tlsbootstraptoken", "certificatekey"}
}

// WithoutSecrets is YAML, of one or several documents, with the values of secret fields left out. Text that is not YAML is
// an error: nobody knows what is in it.
func WithoutSecrets(text []byte) ([]byte, error) {
	in := goyaml.NewDecoder(bytes.NewReader(text))
	var out bytes.Buffer
	encoder := goyaml.NewEncoder(&out)
	encoder.SetIndent(2)
	for {
		var document goyaml.Node
		err := in.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("leave out secrets: %w", err)
		}
		leaveOut(&document)
		if err := encoder.Encode(&document); err != nil {
			return nil, fmt.Errorf("leave out secrets: %w", err)
		}
	}
	err := encoder.Close()
	return out.Bytes(), err
}

// leaveOut walks a document. Comments go, too: they may repeat anything.
func leaveOut(n *goyaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	for i, child := range n.Content {
		secret := n.Kind == goyaml.MappingNode && i%2 == 1 && slices.Contains(secretFields(), strings.ToLower(n.Content[i-1].Value))
		if secret && opens(child) {
			*child = goyaml.Node{Kind: goyaml.ScalarNode, Tag: "!!str", Value: leftOut}
			continue
		}
		leaveOut(child)
	}
}

// opens: a number or a text; a reference to a Secret by its name is none, so mappings are looked into.
func opens(n *goyaml.Node) bool { return n.Kind != goyaml.MappingNode && n.Kind != goyaml.SequenceNode }

// stored says how an object lies in etcd.
type stored struct {
	under
	data, dekSource []byte // of KMS v2: what is encrypted, and the encrypted DEK source beside it
}

// under is by which key it is encrypted.
type under struct {
	provider string // kms-1, aescbc-2, identity …
	kekID    string
}

// stored reads how the object under a key lies in etcd.
func (ds *dataset) stored(ctx context.Context, key string) (stored, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	value, err := ReadEtcd(ctx, ds.e.controlPlane.Storage, key)
	if err != nil {
		return stored{}, fmt.Errorf("read %s from etcd: %w", key, err)
	}
	s, err := parseStored(value)
	if err != nil {
		return stored{}, fmt.Errorf("%s in etcd: %w", key, err)
	}
	return s, nil
}

// prefixKMS begins every value that KMS v2 has encrypted: k8s:enc:kms:v2:NAME:
const prefixKMS = "k8s:enc:kms:v2:"

// localCiphers encrypt with a key of the API server's own: k8s:enc:aescbc:v1:KEY:
func localCiphers() map[string]encryption.Type {
	return map[string]encryption.Type{"k8s:enc:aescbc:v1:": encryption.AESCBC, "k8s:enc:aesgcm:v1:": encryption.AESGCM}
}

// parseStored reads the storage prefix and, of an encrypted value, the key_id beside the data.
func parseStored(value []byte) (stored, error) {
	rest, encrypted := bytes.CutPrefix(value, []byte(prefixKMS))
	if !encrypted {
		return parseLocal(value)
	}
	name, message, ok := bytes.Cut(rest, []byte(":"))
	if !ok {
		return stored{}, errors.New("the storage prefix has no end")
	}
	var o kmstypes.EncryptedObject
	if err := proto.Unmarshal(message, &o); err != nil {
		return stored{}, fmt.Errorf("encrypted object: %w", err)
	}
	provider, ok := operand.KMSProvider(string(name))
	if !ok {
		return stored{}, fmt.Errorf("the storage prefix names the provider %q: expected kms-KEYID or KEYID_RESOURCE", name)
	}
	return stored{under{provider.Name(), o.KeyID}, o.EncryptedData, o.EncryptedDEKSource}, nil
}

// parseLocal reads the storage prefix of a value that no plugin has encrypted.
func parseLocal(value []byte) (stored, error) {
	for prefix, kind := range localCiphers() {
		if rest, ok := bytes.CutPrefix(value, []byte(prefix)); ok {
			name, _, ok := bytes.Cut(rest, []byte(":"))
			if !ok {
				return stored{}, errors.New("the storage prefix has no end")
			}
			return stored{under: under{provider: encryption.Provider{Type: kind, KeyID: string(name)}.Name()}}, nil
		}
	}
	if bytes.HasPrefix(value, []byte("k8s:enc:")) {
		return stored{}, fmt.Errorf("nobody knows its storage prefix %.32q", value)
	}
	return stored{under: under{provider: string(encryption.Identity)}}, nil
}

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
		if err := sw.e.persist(ctx, func(ctx context.Context, c *Client) error { return c.keepKey(ctx, sw.e.component(), p, key) }); err != nil {
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
	if err := c.ensure(ctx, namespaceObjects(), newObject("v1", "Namespace", keyNamespace, nil)); err != nil {
		return err
	}
	s := keySecret(component, p, key)
	if err := c.remove(ctx, secretObjects(), keyNamespace, s.GetName()); err != nil {
		return err
	}
	_, err := c.Resource(secretObjects()).Namespace(keyNamespace).Create(ctx, s, metav1.CreateOptions{})
	return err
}

func keySecret(component string, p encryption.Provider, key []byte) *unstructured.Unstructured {
	s := newObject("v1", "Secret", keyPrefix+component+"-"+p.Name(), object{"data": object{keyField: base64.StdEncoding.EncodeToString(key)}})
	s.SetLabels(map[string]string{keyLabel: component, dataLabel: "true"})
	s.SetAnnotations(map[string]string{keyMode: string(p.Type)})
	return s
}
