package operator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/informer"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
)

// observe reads the caches. An object that cannot be read stops the operator: guessing would lose data.
func (o *Operator) observe() (Seen, error) {
	s := NewSeen()
	for _, one := range sorted[*corev1.Secret](o.sources.secrets) {
		if err := s.Add(o.kept.get(one, func() (Kept, error) { return ReadSecret(one) })); err != nil {
			return Seen{}, err
		}
	}
	for _, one := range sorted[*corev1.ConfigMap](o.sources.maps) {
		if err := s.Add(o.kept.get(one, func() (Kept, error) { return ReadConfigMap(one) })); err != nil {
			return Seen{}, err
		}
	}
	if err := s.known(o.Config); err != nil {
		return Seen{}, err
	}
	var err error
	if s.Nodes, err = o.nodes(s); err != nil {
		return Seen{}, err
	}
	if s.Desired, err = o.content(s); err != nil {
		return Seen{}, err
	}
	if cr := single(o.sources.operator); cr != nil {
		o.failing.add(&s, reports(cr, o.Kind))
	}
	s.Credentials = map[config.Reference]string{}
	for r, content := range o.contents() {
		s.Credentials[r] = config.ContentHash(content)
	}
	switch configuration, err := o.configuration(); {
	case errors.Is(err, ErrBehind):
		return Seen{}, err
	case err != nil:
		s.Wanted = core.Wanted{Invalid: contract.SafeText(err.Error(), contract.MaxDetailChars)}
	default:
		s.Wanted = wanted(configuration, o.Config, s.Credentials)
	}
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
	item, there, err := of.GetByKey(CR)
	if err != nil || !there {
		return nil
	}
	return item.(*unstructured.Unstructured).Object
}

// configuration is the APIServer configuration, with the settings of Vault to which it refers.
func (o *Operator) configuration() (map[string]any, error) {
	configuration := single(o.sources.config)
	name, err := config.Referred(configuration)
	if err != nil || name == "" {
		return configuration, err
	}
	if o.sources.needVault(); !o.sources.vault.Synced() {
		return nil, ErrBehind
	}
	var settings map[string]any
	if item, there, err := o.sources.vault.GetByKey(name); err == nil && there {
		settings = item.(*unstructured.Unstructured).Object
	}
	return config.Inline(configuration, settings)
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
		all[config.Reference{Kind: "ConfigMap", Name: m.Name}] = configMapData(m)
	}
	return all
}

// configMapData is the content of a ConfigMap with credentials, in the form of a Secret's.
func configMapData(m *corev1.ConfigMap) map[string][]byte {
	data := map[string][]byte{}
	maps.Copy(data, m.BinaryData)
	for name, text := range m.Data { // a name is in one of the two only
		data[name] = []byte(text)
	}
	return data
}

// wanted is what the administrator asks for with an APIServer configuration, which is nil where there is none. credentials are hashes of the content of what is
// in the namespace Credentials.
func wanted(configuration map[string]any, o config.Options, credentials map[config.Reference]string) core.Wanted {
	var a *configv1.APIServer
	if configuration != nil {
		a = &configv1.APIServer{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(configuration, a); err != nil {
			return core.Wanted{Invalid: fmt.Sprintf("apiservers.config.openshift.io/%s: %v", CR, err)}
		}
	}
	w, err := config.Read(a, o)
	if err != nil {
		return core.Wanted{Invalid: err.Error()}
	}
	w.KMS = w.KMS.WithContent(credentials)
	out := core.Wanted{Wanted: w}
	for _, r := range w.KMS.Credentials() { // sorted
		if _, there := credentials[r]; !there {
			out.Missing = append(out.Missing, r.String())
		}
	}
	return out
}

// memo keeps what was read of objects, until they change. An operator looks at all of them whenever one changes.
type memo[T any] struct{ of map[string]read[T] }

type read[T any] struct {
	version string
	is      T
}

// memoSize is more than there are objects at a time.
const memoSize = 512

// get is what is read of an object.
func (m *memo[T]) get(o metav1.Object, read func() (T, error)) (T, error) {
	name := o.GetNamespace() + "/" + o.GetName()
	if has, there := m.of[name]; there && has.version == o.GetResourceVersion() {
		return has.is, nil
	}
	is, err := read()
	if err == nil {
		m.put(name, o.GetResourceVersion(), is)
	}
	return is, err
}

func (m *memo[T]) put(name, version string, is T) {
	if m.of == nil || len(m.of) >= memoSize { // names of what is gone add up
		m.of = map[string]read[T]{}
	}
	m.of[name] = read[T]{version, is}
}
