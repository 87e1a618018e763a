package operator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/exchange"
)

// observe reads the caches and asks the nodes. An object that cannot be read stops the operator: guessing would lose data.
func (o *Operator) observe(ctx context.Context) (exchange.Seen, error) {
	s := exchange.NewSeen()
	for _, one := range o.sources.secrets.GetStore().List() {
		if err := s.Add(exchange.ReadSecret(one.(*corev1.Secret))); err != nil {
			return exchange.Seen{}, err
		}
	}
	for _, one := range o.sources.maps.GetStore().List() {
		if err := s.Add(exchange.ReadConfigMap(one.(*corev1.ConfigMap))); err != nil {
			return exchange.Seen{}, err
		}
	}
	if err := s.Known(o.Config); err != nil {
		return exchange.Seen{}, err
	}
	var err error
	if s.Nodes, err = o.Executor.Nodes(ctx); err != nil {
		return exchange.Seen{}, fmt.Errorf("ask the nodes: %w", err)
	}
	if cr := single(o.sources.operator); cr != nil {
		o.failing.Add(&s, o.Core.Scheme, exchange.Reports(cr, o.Kind))
	}
	s.Wanted = exchange.Wanted(single(o.sources.config), o.Config, o.there)
	s.Migration, s.Preflight = o.migration.get(), o.preflight.get()
	return s, nil
}

// single is the one object of a cache; nil if there is none.
func single(of cache.SharedIndexInformer) map[string]any {
	item, there, err := of.GetStore().GetByKey(object)
	if err != nil || !there {
		return nil
	}
	return item.(*unstructured.Unstructured).Object
}

// there says whether there are credentials of a name.
func (o *Operator) there(r config.Reference) bool {
	store := o.sources.credentialSecrets.GetStore()
	if r.Kind == "ConfigMap" {
		store = o.sources.credentialMaps.GetStore()
	}
	_, there, err := store.GetByKey(credentials + "/" + r.Name)
	return err == nil && there
}
