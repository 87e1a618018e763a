package apiserver

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	storageerrors "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
)

// atRest reads and writes the bytes that etcd has of encrypted objects, by kube-apiserver's own transformers
// (k8s.io/apiserver/pkg/storage/value), so that envelope encryption, its cache of data keys and its errors are the real
// ones.
type atRest struct {
	cluster     *Cluster
	registry    string                                       // begins the keys
	transformer func(schema.GroupResource) value.Transformer // Options.Transformer
}

func (s atRest) of(r schema.GroupVersionResource) value.Transformer {
	if s.transformer == nil {
		return nil
	}
	return s.transformer(r.GroupResource())
}

// Registry begins the keys in etcd of the objects of a kube-apiserver.
const Registry = "/registry"

// EtcdKey is where etcd has an object of an API server whose keys begin with registry. Of the groups of kube-apiserver it knows the core group.
func EtcdKey(registry string, k store.Key) string {
	key := registry + "/" + k.Resource.Resource + "/"
	if k.Resource.Group != "" {
		key = registry + "/" + k.Resource.Group + "/" + k.Resource.Resource + "/"
	}
	if k.Namespace != "" {
		key += k.Namespace + "/"
	}
	return key + k.Name
}

func (s atRest) key(k store.Key) string { return EtcdKey(s.registry, k) }

// mayWrite returns an error if the server cannot decrypt the stored object or encrypt the new one. It may take as long
// as a plugin does, so it is called before the cluster is locked. The ciphertext of "{}" is dropped: it shows whether
// the transformer can encrypt.
func (s atRest) mayWrite(q *Request) error {
	t := s.of(q.Key().Resource)
	if t == nil {
		return nil
	}
	if err := s.decrypt(q.HTTP.Context(), q.Key()); err != nil {
		return storageerrors.InterpretGetError(err, q.Key().Resource.GroupResource(), q.Name)
	}
	if q.Verb == "delete" {
		return nil
	}
	if _, err := t.TransformToStorage(q.HTTP.Context(), []byte("{}"), value.DefaultContext(s.key(q.Key()))); err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}

// decrypt reads what etcd has as kube-apiserver does. Its error is a storage.StorageError: the object is corrupt.
func (s atRest) decrypt(ctx context.Context, k store.Key) error {
	t := s.of(k.Resource)
	data := s.cluster.Stored(k)
	if t == nil || data == nil {
		return nil
	}
	if _, _, err := t.TransformFromStorage(ctx, data, value.DefaultContext(s.key(k))); err != nil {
		return storage.NewCorruptObjError(s.key(k), fmt.Errorf("data from the storage is not transformable revision=0: %w", err))
	}
	return nil
}

// encrypt keeps the bytes of a version. A write that changes nothing is stored again only if its ciphertext is stale
// (another key), which is what a storage migration relies on. The cluster is locked: no transformer calls a plugin here,
// because KMS v2 has its data key already, and what mayWrite has decrypted is cached.
func (s atRest) encrypt(ctx context.Context, v *store.Version, changed bool) error {
	t := s.of(v.Key.Resource)
	if t == nil {
		return nil
	}
	of := value.DefaultContext(s.key(v.Key))
	if old := s.cluster.stored[v.Key]; !changed && old != nil {
		if _, stale, err := t.TransformFromStorage(ctx, old, of); err == nil && !stale {
			return nil
		}
	}
	data, err := json.Marshal(v.Body())
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if data, err = t.TransformToStorage(ctx, data, of); err != nil {
		return apierrors.NewInternalError(err)
	}
	s.cluster.stored[v.Key] = data
	return nil
}
