package operand

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/internal/informer"
	"github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// sources are caches of what the operator writes.
type sources struct {
	secrets, maps *informer.Cache // keys, revisions and the configuration that is wanted
	revisions     *informer.Cache // of the pods
	preflight     *informer.Cache // pods of pre-flight checks
	migrations    *informer.Cache
	nodes         *informer.Cache
}

// newSources are caches of what the operator writes and of the nodes; changed is called after every change. The pre-flight pods are in any namespace.
func newSources(o Options, changed func()) *sources {
	api := o.Client.CoreV1()
	secrets := func(namespace string) *informer.Cache {
		return informer.New(informer.Of("secrets of "+namespace, &corev1.Secret{}, api.Secrets(namespace)), changed)
	}
	preflight := informer.Of("pre-flight pods", &corev1.Pod{}, api.Pods(metav1.NamespaceAll))
	preflight.Labels = operator.PreflightSelector
	return &sources{
		secrets: secrets(revision.Namespace), revisions: secrets(o.Namespace), preflight: informer.New(preflight, changed),
		maps:       informer.New(informer.Of("configmaps of "+revision.Namespace, &corev1.ConfigMap{}, api.ConfigMaps(revision.Namespace)), changed),
		migrations: informer.New(informer.Of("migrations", &unstructured.Unstructured{}, o.Dynamic.Resource(o.Migrations).Namespace(metav1.NamespaceAll)), changed),
		nodes:      informer.New(informer.Of("nodes", &corev1.Node{}, api.Nodes()), changed),
	}
}

func (s *sources) all() []*informer.Cache {
	return []*informer.Cache{s.secrets, s.maps, s.revisions, s.preflight, s.migrations, s.nodes}
}

// items are the objects of a cache.
func items[T any](of *informer.Cache) (all []T) {
	for _, one := range of.List() {
		all = append(all, one.(T))
	}
	return all
}

// secret is one of the Secrets of a cache, or nil.
func secret(of *informer.Cache, namespace, name string) *corev1.Secret {
	item, there, err := of.GetByKey(namespace + "/" + name)
	if err != nil || !there {
		return nil
	}
	return item.(*corev1.Secret)
}

// nodeUID is the UID of the Node object of a name; empty: there is none.
func (s *sources) nodeUID(name string) string {
	item, there, err := s.nodes.GetByKey(name)
	if err != nil || !there {
		return ""
	}
	return string(item.(*corev1.Node).UID)
}
