package operator

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kmsharness/kmsharness/harness/lifecycle/config"
	"github.com/kmsharness/kmsharness/harness/lifecycle/core"
	"github.com/kmsharness/kmsharness/harness/lifecycle/revision"
)

// seen is what was observed, with what it takes to act upon it.
type seen struct {
	core.Observed
	secrets  map[uint64]*corev1.Secret // of keys
	material map[uint64][]byte
	files    map[int][]byte // of encryption configurations
}

// observe reads the caches and asks the nodes. An object that cannot be read stops the operator: guessing would lose data.
func (o *Operator) observe(ctx context.Context) (seen, error) {
	s := seen{secrets: map[uint64]*corev1.Secret{}, material: map[uint64][]byte{}, files: map[int][]byte{}}
	for _, one := range o.sources.secrets.GetStore().List() {
		if err := s.addSecret(one.(*corev1.Secret)); err != nil {
			return seen{}, err
		}
	}
	for _, one := range o.sources.maps.GetStore().List() {
		_, p, err := revision.ReadPluginConfig(one.(*corev1.ConfigMap))
		if err != nil {
			return seen{}, err
		}
		s.PluginConfigs = append(s.PluginConfigs, p)
	}
	var err error
	if s.Nodes, err = o.Executor.Nodes(ctx); err != nil {
		return seen{}, fmt.Errorf("ask the nodes: %w", err)
	}
	o.addReports(&s)
	s.Wanted = o.wanted()
	s.Migration, s.Preflight = o.migration.get(), o.preflight.get()
	return s, nil
}

func (s *seen) addSecret(one *corev1.Secret) error {
	switch kind := one.Labels[revision.KindLabel]; kind {
	case revision.KindKey:
		_, k, material, err := revision.ReadKey(one)
		if err != nil {
			return err
		}
		s.Keys, s.secrets[k.ID], s.material[k.ID] = append(s.Keys, k), one, material
	case revision.KindConfig:
		_, c, file, err := revision.ReadConfig(one)
		if err != nil {
			return err
		}
		s.Configs, s.files[c.Revision] = append(s.Configs, c), file
	}
	return nil
}

// wanted is what the administrator asks for.
func (o *Operator) wanted() core.Wanted {
	var a *configv1.APIServer
	if item, there, err := o.sources.config.GetStore().GetByKey(object); err == nil && there {
		a = &configv1.APIServer{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.(*unstructured.Unstructured).Object, a); err != nil {
			return core.Wanted{Invalid: fmt.Sprintf("apiservers.config.openshift.io/%s: %v", object, err)}
		}
	}
	w, err := config.Read(a, o.Config)
	if err != nil {
		return core.Wanted{Invalid: err.Error()}
	}
	return core.Wanted{Wanted: w, Missing: o.missing(w.KMS)}
}

// missing are credentials that are not there.
func (o *Operator) missing(p config.Plugin) []string {
	var missing []string
	for _, r := range p.Credentials() {
		store := o.sources.credentialSecrets.GetStore()
		if r.Kind == "ConfigMap" {
			store = o.sources.credentialMaps.GetStore()
		}
		if _, there, err := store.GetByKey(credentials + "/" + r.Name); err != nil || !there {
			missing = append(missing, r.String())
		}
	}
	slices.Sort(missing)
	return missing
}
