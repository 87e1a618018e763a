package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/exchange"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// caches are what an operator saw last.
type caches struct {
	full     bool                        // after the first look
	objects  map[string]object           // keys and revisions, by name: those of Secrets and ConfigMaps differ
	referred map[config.Reference]string // credentials that are there, by hashes of their content
	config   map[string]any
	reported *objects.Version // that the reports are of
	reports  []exchange.Report
}

// newCaches are those of who has seen nothing yet.
func newCaches() caches {
	return caches{referred: map[config.Reference]string{}, objects: map[string]object{}}
}

// object is one that was read, in a version.
type object struct {
	version string
	read    exchange.Kept
	err     error
}

func configMaps() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

// watches says whether an operator is told of changes of an object. It hears of Secrets when they are written.
func (s *shift) watches(k objects.Key) bool {
	return k == s.o.w.crKey() || k == s.o.w.configKey() || k.Resource == configMaps()
}

// pluginConfigPrefix begins the names of ConfigMaps with plugins.
const pluginConfigPrefix = "kms-plugin-config-"

// errNotSeen is for an operator that has not seen its objects yet.
var errNotSeen = errors.New("no API server has answered yet")

// observe reads what there is and asks the nodes. An object that cannot be read stops the operator.
func (s *shift) observe() (exchange.Seen, error) {
	if err := s.refresh(); err != nil {
		return exchange.Seen{}, err
	}
	c := &s.caches
	seen, err := c.seen()
	if err != nil {
		return exchange.Seen{}, err
	}
	release := config.Options{BeforeKMS: s.older}
	if err := seen.Known(release); err != nil {
		return exchange.Seen{}, err
	}
	seen.Nodes = s.o.e.pods.nodes()
	s.failing.Add(&seen, c.reports)
	seen.Credentials = c.referred
	seen.Wanted = exchange.Wanted(c.config, release, c.referred)
	seen.Migration, seen.Preflight = s.migration.Result, s.preflight.Result
	return seen, nil
}

// seen are the keys and revisions. One that cannot be read is an error.
func (c *caches) seen() (exchange.Seen, error) {
	seen := exchange.NewSeen()
	for _, name := range slices.Sorted(maps.Keys(c.objects)) {
		if err := seen.Add(c.objects[name].read, c.objects[name].err); err != nil {
			return exchange.Seen{}, err
		}
	}
	return seen, nil
}

// refresh sees what API servers know, if one answers. They hold what they have read in clear text, so that nothing is decrypted for it.
func (s *shift) refresh() error {
	c := &s.caches
	switch {
	case s.o.way() != nil:
	case c.full:
		return nil
	default:
		return errNotSeen
	}
	before := c.objects
	fresh := newCaches()
	c.full, c.referred, c.objects = true, fresh.referred, fresh.objects
	s.refreshSecrets(before)
	if err := s.refreshMaps(before); err != nil {
		return err
	}
	c.config = nil
	if v, err := s.o.w.store.Get(s.o.w.configKey()); err == nil {
		c.config = v.Body()
	}
	if v, err := s.o.w.store.Get(s.o.w.crKey()); err == nil && v != c.reported {
		c.reported, c.reports = v, exchange.Reports(v.Body(), s.o.w.operator.core.Kind)
	}
	return nil
}

func (s *shift) refreshSecrets(before map[string]object) {
	for name, stored := range s.o.w.main.secrets {
		switch namespaceOf(name) {
		case exchange.Credentials:
			s.caches.referred[config.Reference{Kind: "Secret", Name: name}] = s.o.w.hooks.content(stored)
		case revision.Namespace:
			if !s.o.w.owns(name) {
				continue
			}
			s.caches.objects[name] = before[name].in(strconv.FormatInt(stored.revision, 10), func(version string) (exchange.Kept, error) {
				one := &corev1.Secret{}
				if err := json.Unmarshal(stored.value, one); err != nil {
					return exchange.Kept{}, fmt.Errorf("read %s: %w", s.o.w.main.encrypts.objectName(name), err)
				}
				one.ResourceVersion = version
				return exchange.ReadSecret(one)
			})
		}
	}
}

// in is the object in a version, which is read if it is another one than before.
func (o object) in(version string, read func(version string) (exchange.Kept, error)) object {
	if o.version != version {
		o.version = version
		o.read, o.err = read(version)
	}
	return o
}

func (s *shift) refreshMaps(before map[string]object) error {
	all, _, err := s.o.w.store.List(configMaps(), "")
	if err != nil {
		return err
	}
	for _, v := range all {
		name := v.Key.Name
		switch v.Key.Namespace {
		case exchange.Credentials:
			s.caches.referred[config.Reference{Kind: "ConfigMap", Name: name}] = v.ResourceVersion() // no scenario writes one
		case revision.Namespace:
			if !strings.HasPrefix(name, pluginConfigPrefix+string(s.o.w.component())+"-") {
				continue
			}
			s.caches.objects[name] = before[name].in(v.ResourceVersion(), func(string) (exchange.Kept, error) {
				one := &corev1.ConfigMap{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(v.Object().Object, one); err != nil {
					return exchange.Kept{}, fmt.Errorf("read configmaps/%s/%s: %w", v.Key.Namespace, name, err)
				}
				return exchange.ReadConfigMap(one)
			})
		}
	}
	return nil
}

// way is a node whose API server answers through the load balancer; nil if none does.
func (o *operatorProc) way() *node {
	o.asked++
	all := slices.DeleteFunc(o.e.main().serving(), func(n *node) bool {
		return n.isolated || n.balanced.state == history.LinkReset || n.balanced.silent() || n.stored.silent() || !o.w.etcd.runs()
	})
	if len(all) == 0 || !o.w.balancer.runs() {
		return nil
	}
	return all[o.asked%len(all)]
}
