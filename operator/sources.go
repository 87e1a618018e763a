package operator

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/kmsharness/kmsharness/operator/revision"
)

// sources are caches of what an operator watches.
type sources struct {
	managed, referred  informers.SharedInformerFactory
	configs, operators dynamicinformer.DynamicSharedInformerFactory

	secrets, maps                     cache.SharedIndexInformer // keys and revisions
	credentialSecrets, credentialMaps cache.SharedIndexInformer
	config, operator                  cache.SharedIndexInformer
}

func newSources(o *Operator) (*sources, error) {
	labelled := informers.WithTweakListOptions(func(l *metav1.ListOptions) { l.LabelSelector = revision.ComponentLabel + "=" + string(o.Component) })
	only := func(l *metav1.ListOptions) {
		l.FieldSelector = fields.OneTermEqualSelector("metadata.name", object).String()
	}
	s := &sources{
		managed:   informers.NewSharedInformerFactoryWithOptions(o.client, 0, informers.WithNamespace(revision.Namespace), labelled),
		referred:  informers.NewSharedInformerFactoryWithOptions(o.client, 0, informers.WithNamespace(credentials)),
		configs:   dynamicinformer.NewFilteredDynamicSharedInformerFactory(o.dynamic, 0, metav1.NamespaceAll, only),
		operators: dynamicinformer.NewFilteredDynamicSharedInformerFactory(o.dynamic, 0, metav1.NamespaceAll, only),
	}
	s.secrets, s.maps = s.managed.Core().V1().Secrets().Informer(), s.managed.Core().V1().ConfigMaps().Informer()
	s.credentialSecrets, s.credentialMaps = s.referred.Core().V1().Secrets().Informer(), s.referred.Core().V1().ConfigMaps().Informer()
	s.config, s.operator = s.configs.ForResource(apiServers()).Informer(), s.operators.ForResource(o.Resource).Informer()
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { o.notify() }, UpdateFunc: func(any, any) { o.notify() }, DeleteFunc: func(any) { o.notify() },
	}
	for _, i := range s.all() {
		if _, err := i.AddEventHandler(handler); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *sources) all() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{s.secrets, s.maps, s.credentialSecrets, s.credentialMaps, s.config, s.operator}
}

// start returns when every cache has its first list.
func (s *sources) start(ctx context.Context) error {
	s.managed.Start(ctx.Done())
	s.referred.Start(ctx.Done())
	s.configs.Start(ctx.Done())
	s.operators.Start(ctx.Done())
	for _, i := range s.all() {
		if !cache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
			return errors.New("stopped before the first list")
		}
	}
	return nil
}

// end returns when no watch runs any more; their context has ended.
func (s *sources) end() {
	s.managed.Shutdown()
	s.referred.Shutdown()
	s.configs.Shutdown()
	s.operators.Shutdown()
}
