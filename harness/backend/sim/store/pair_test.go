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

// pair does everything twice, with the real code and with the model, and says what differs.
type pair struct {
	real, model *Store
	now         time.Time
	// spoil makes the model a wrong one: it is called before every operation.
	spoil   func(*Store)
	applies int
}

func newPair(types *Types) *pair {
	return &pair{real: New(types, Options{SSA: Real}), model: New(types, Options{SSA: Model}), now: start}
}

// do runs an operation on both; the difference is empty when there is none.
func (p *pair) do(operation func(s *Store) (*Version, error)) string {
	if p.spoil != nil {
		p.spoil(p.model)
	}
	v, err := operation(p.real)
	w, errModel := operation(p.model)
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
	return p.do(func(s *Store) (*Version, error) { return s.Apply(p.now, r, patch, o) })
}
