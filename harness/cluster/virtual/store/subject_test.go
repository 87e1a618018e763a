package store

import (
	"encoding/json"
	"fmt"
	"time"

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

// subject is a store to which operations are made.
type subject struct {
	store    *Store
	now      time.Time
	updaters int // how many managers make updates, less one
	// server is held against the store; nil: nothing is.
	server func(o operation, v *Version, err error) string
}

func newSubject(types *Types) *subject {
	return &subject{store: New(types), now: start, updaters: 12}
}

// do makes an operation; the difference is empty when there is none.
func (p *subject) do(o operation) string {
	v, err := o.on(p.store, p.now)
	if p.server != nil {
		return p.server(o, v, err)
	}
	return wrongSize(v)
}

// wrongSize is the difference between the size of a version and that of its JSON.
func wrongSize(v *Version) string {
	if v == nil {
		return ""
	}
	o := v.Object()
	o.SetResourceVersion("")
	b, err := json.Marshal(o.Object)
	if err != nil || v.Size() != len(b) {
		return fmt.Sprintf("size %d of %s, expected %d (%v)", v.Size(), b, len(b), err)
	}
	return ""
}

func (p *subject) apply(r schema.GroupVersionResource, patch *unstructured.Unstructured, o ApplyOptions) string {
	return p.do(operation{verb: "apply", key: Key{r, "", patch.GetName()}, object: patch, manager: o.Manager, force: o.Force, subresource: o.Subresource})
}
