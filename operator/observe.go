package operator

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/internal/informer"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/exchange"
)

// observe reads the caches. An object that cannot be read stops the operator: guessing would lose data.
func (o *Operator) observe() (exchange.Seen, error) {
	s := exchange.NewSeen()
	for _, one := range sorted[*corev1.Secret](o.sources.secrets) {
		if err := s.Add(o.kept.get(one, func() (exchange.Kept, error) { return exchange.ReadSecret(one) })); err != nil {
			return exchange.Seen{}, err
		}
	}
	for _, one := range sorted[*corev1.ConfigMap](o.sources.maps) {
		if err := s.Add(o.kept.get(one, func() (exchange.Kept, error) { return exchange.ReadConfigMap(one) })); err != nil {
			return exchange.Seen{}, err
		}
	}
	if err := s.Known(o.Config); err != nil {
		return exchange.Seen{}, err
	}
	var err error
	if s.Nodes, err = o.nodes(s); err != nil {
		return exchange.Seen{}, err
	}
	if s.Desired, err = o.content(s); err != nil {
		return exchange.Seen{}, err
	}
	if cr := single(o.sources.operator); cr != nil {
		o.failing.Add(&s, exchange.Reports(cr, o.Kind))
	}
	s.Credentials = map[config.Reference]string{}
	for r, content := range o.contents() {
		s.Credentials[r] = config.ContentHash(content)
	}
	s.Wanted = exchange.Wanted(single(o.sources.config), o.Config, s.Credentials)
	s.Migration, s.Preflight = o.migration.get(), o.preflight.get()
	return s, nil
}

// sorted lists a cache by name: the operator reports the first object that it cannot read, the same one each time.
func sorted[T metav1.Object](of *informer.Cache) []T {
	var all []T
	for _, one := range of.List() {
		all = append(all, one.(T))
	}
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all
}

// single is the one object of a cache; nil if there is none.
func single(of *informer.Cache) map[string]any {
	item, there, err := of.GetByKey(object)
	if err != nil || !there {
		return nil
	}
	return item.(*unstructured.Unstructured).Object
}

// contents are the credentials that there are.
func (o *Operator) contents() map[config.Reference]map[string][]byte {
	all := map[config.Reference]map[string][]byte{}
	for _, one := range o.sources.credentialSecrets.List() {
		s := one.(*corev1.Secret)
		data := s.Data
		if o.Contents != nil {
			data = o.Contents(s.ResourceVersion, data)
		}
		all[config.Reference{Kind: "Secret", Name: s.Name}] = data
	}
	for _, one := range o.sources.credentialMaps.List() {
		m := one.(*corev1.ConfigMap)
		all[config.Reference{Kind: "ConfigMap", Name: m.Name}] = exchange.ConfigMapData(m)
	}
	return all
}
