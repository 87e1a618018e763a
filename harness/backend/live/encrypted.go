package live

import (
	"encoding/base64"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Encrypted are the objects that an API server encrypts, and into which the data of scenarios go.
type Encrypted struct {
	Resource schema.GroupVersionResource
	Kind     string
	// Registry begins their keys in etcd; it ends with a slash.
	Registry string
	// Field is where the value stands, in base64.
	Field []string
	// Spec is what stands beside it, for objects that need more.
	Spec map[string]any
}

// encryptedSecrets are those of kube-apiserver.
func encryptedSecrets() Encrypted {
	return Encrypted{Resource: secretObjects(), Kind: "Secret", Registry: "/registry/secrets/", Field: []string{"data", dataField}}
}

// encryptedConfigMaps are encrypted by OpenShift's operators as secrets are.
func encryptedConfigMaps() Encrypted {
	return Encrypted{Resource: configMapObjects(), Kind: "ConfigMap", Registry: "/registry/configmaps/", Field: []string{"binaryData", dataField}}
}

// name is that of the resource, as encryption configurations have it.
func (o Encrypted) name() string {
	if o.Resource.Group == "" {
		return o.Resource.Resource
	}
	return o.Resource.Resource + "." + o.Resource.Group
}

// objectName is what the history calls an object of a scenario.
func (o Encrypted) objectName(name string) string { return o.name() + "/" + dataNamespace + "/" + name }

// object of a scenario with a value.
func (o Encrypted) object(name string, value []byte) *unstructured.Unstructured {
	u := newObject(o.Resource.GroupVersion().String(), o.Kind, name, nil)
	if o.Spec != nil {
		u.Object["spec"] = maps.Clone(o.Spec)
	}
	u.SetLabels(map[string]string{dataLabel: "true"})
	_ = unstructured.SetNestedField(u.Object, base64.StdEncoding.EncodeToString(value), o.Field...) // nothing is in its way
	return u
}

// value of an object.
func (o Encrypted) value(u *unstructured.Unstructured) ([]byte, error) {
	text, _, err := unstructured.NestedString(u.Object, o.Field...)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(text)
}
