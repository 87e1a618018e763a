package operator

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/internal/informer"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// sources are caches of what an operator watches. They list again soon after an outage: each revision of a single node's pod is one.
type sources struct {
	secrets, maps                     *informer.Cache // keys and revisions
	credentialSecrets, credentialMaps *informer.Cache
	config, operator                  *informer.Cache
	desired                           *informer.Cache // the configuration that is wanted
	pods, revisions                   *informer.Cache // of the API server, with their Secrets
	nodes                             *informer.Cache
	vault                             *informer.Cache // VaultKMSConfigs; nothing before needVault

	needVault func() // begins to list and watch them, once: most clusters do not have the resource
}

func newSources(o *Operator) *sources {
	selecting := func(s informer.Source, labels, name string) *informer.Cache {
		if s.Labels = labels; name != "" {
			s.Fields = fields.OneTermEqualSelector("metadata.name", name).String()
		}
		return informer.New(s, o.notify)
	}
	one := func(resource schema.GroupVersionResource) *informer.Cache {
		return selecting(informer.Of(resource.Resource, &unstructured.Unstructured{}, o.dynamic.Resource(resource).Namespace(metav1.NamespaceAll)), "", CR)
	}
	own := revision.ComponentLabel + "=" + string(o.Component)
	api := o.client.CoreV1()
	secrets := func(namespace string) informer.Source {
		return informer.Of("secrets of "+namespace, &corev1.Secret{}, api.Secrets(namespace))
	}
	maps := func(namespace string) informer.Source {
		return informer.Of("configmaps of "+namespace, &corev1.ConfigMap{}, api.ConfigMaps(namespace))
	}
	return &sources{
		secrets: selecting(secrets(revision.Namespace), own, ""), maps: selecting(maps(revision.Namespace), own, ""),
		credentialSecrets: selecting(secrets(Credentials), "", ""), credentialMaps: selecting(maps(Credentials), "", ""),
		config: one(revision.Configurations()), operator: one(o.Resource), desired: selecting(secrets(revision.Namespace), "", o.DesiredName()),
		pods:      selecting(informer.Of("pods of "+o.Namespace, &corev1.Pod{}, api.Pods(o.Namespace)), APIServerLabel+"=true", ""),
		revisions: selecting(secrets(o.Namespace), "", ""), nodes: selecting(informer.Of("nodes", &corev1.Node{}, api.Nodes()), nodeLabel, ""),
		vault: selecting(informer.Of(config.VaultKMSConfigs().Resource, &unstructured.Unstructured{}, o.dynamic.Resource(config.VaultKMSConfigs())), "", ""),
	}
}

func (s *sources) all() []*informer.Cache {
	return []*informer.Cache{s.secrets, s.maps, s.credentialSecrets, s.credentialMaps, s.config, s.operator, s.desired, s.pods, s.revisions, s.nodes}
}

// start begins to list and watch, and returns when every cache has its first list. What runs ends with ctx, and is waited for by work.
func (s *sources) start(ctx context.Context, work *sync.WaitGroup) error {
	for _, c := range s.all() {
		work.Go(func() { c.Run(ctx) })
	}
	s.needVault = sync.OnceFunc(func() { work.Go(func() { s.vault.Run(ctx) }) })
	for _, c := range s.all() {
		if err := c.WaitSynced(ctx); err != nil {
			return err
		}
	}
	return nil
}
