package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// operation is one write, as a value, so that it can be made to different subjects.
type operation struct {
	verb                 string // create, apply, update, patch, delete
	key                  Key
	object               *unstructured.Unstructured
	patch                []byte
	manager, subresource string
	force                bool
}

func (o operation) on(s *Store, now time.Time) (*Version, error) {
	switch o.verb {
	case "create":
		return s.Create(now, o.key.Resource, o.object, o.manager)
	case "apply":
		return s.Apply(now, o.key.Resource, o.object, ApplyOptions{Manager: o.manager, Force: o.force, Subresource: o.subresource})
	case "update":
		return s.Update(now, o.key.Resource, o.object, UpdateOptions{Manager: o.manager, Subresource: o.subresource})
	case "patch":
		return s.JSONPatch(now, o.key, o.patch, UpdateOptions{Manager: o.manager, Subresource: o.subresource})
	}
	return s.Delete(o.key, Preconditions{})
}

// pair does everything twice, with the real code and with something else, and says what differs.
type pair struct {
	real     *Store
	model    *Store
	now      time.Time
	updaters int // how many managers make updates, less one
	applies  int
	// spoil makes the model a wrong one: it is called before every operation.
	spoil func(*Store)
	// server takes the place of the model.
	server func(o operation, real *Version, err error) string
}

func newPair(types *Types) *pair {
	return &pair{real: New(types, Options{SSA: Real}), model: New(types, Options{SSA: Model}), now: start, updaters: 12}
}

// do makes an operation to both; the difference is empty when there is none.
func (p *pair) do(o operation) string {
	if p.spoil != nil {
		p.spoil(p.model)
	}
	v, err := o.on(p.real, p.now)
	if p.server != nil {
		return p.server(o, v, err)
	}
	w, errModel := o.on(p.model, p.now)
	if a, b := describeError(err), describeError(errModel); a != b {
		return fmt.Sprintf("errors differ:\nreal  %s\nmodel %s", a, b)
	}
	if a, b := describeVersion(v), describeVersion(w); a != b {
		return fmt.Sprintf("answers differ:\nreal  %s\nmodel %s", a, b)
	}
	return p.compare()
}

// compare holds all that the two keep against each other.
func (p *pair) compare() string {
	if p.real.revision != p.model.revision || len(p.real.log) != len(p.model.log) || len(p.real.objects) != len(p.model.objects) {
		return fmt.Sprintf("revisions differ: real %d, model %d", p.real.revision, p.model.revision)
	}
	for k, v := range p.real.objects {
		w := p.model.objects[k]
		if w == nil {
			return fmt.Sprintf("%v: the model has none", k)
		}
		if a, b := describeVersion(v.Version), describeVersion(w.Version); a != b {
			return fmt.Sprintf("objects differ:\nreal  %s\nmodel %s", a, b)
		}
	}
	if p.spoil != nil {
		return ""
	}
	return p.model.inconsistent()
}

// inconsistent is what is wrong with the index of a store: another one, made from nothing, is different.
func (s *Store) inconsistent() string {
	for k, r := range s.objects {
		if r.index == nil {
			continue
		}
		t, _ := s.types.of(k.Resource)
		fresh := &record{Version: r.Version}
		fresh.reindex(t, r.owners.entries(), nil)
		for i := range t.lists {
			a, b := r.index.lists[i], fresh.index.lists[i]
			if len(a.at) != len(b.at) || len(a.owners) != len(b.owners) {
				return fmt.Sprintf("index of %v: %v, expected %v", t.lists[i].path, a, b)
			}
			for key, at := range b.at {
				if a.at[key] != at || len(a.owners[key]) != len(b.owners[key]) {
					return fmt.Sprintf("index of %v[%s]: %d %v, expected %d %v", t.lists[i].path, key, a.at[key], a.owners[key], at, b.owners[key])
				}
			}
		}
	}
	return ""
}

func describeVersion(v *Version) string {
	if v == nil {
		return "none"
	}
	b, err := json.Marshal(v.Object().Object)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s size %d generation %d", b, v.Size(), v.Generation)
}

func describeError(err error) string {
	var s *apierrors.StatusError
	if errors.As(err, &s) {
		b, _ := json.Marshal(s.ErrStatus)
		return string(b)
	}
	return fmt.Sprint(err)
}

func (p *pair) apply(r schema.GroupVersionResource, patch *unstructured.Unstructured, o ApplyOptions) string {
	p.applies++
	return p.do(operation{verb: "apply", key: Key{r, "", patch.GetName()}, object: patch, manager: o.Manager, force: o.Force, subresource: o.Subresource})
}
