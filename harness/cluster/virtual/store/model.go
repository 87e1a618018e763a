package store

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// applyModel answers an apply that changes nothing but texts from the index, and leaves every other one to the real code.
func (s *Store) applyModel(now time.Time, t *Type, live *record, patch *unstructured.Unstructured, o ApplyOptions) (*Version, error) {
	if v, ok, err := s.steady(now, t, live, patch, o); ok {
		return v, err
	}
	c, err := t.merge.apply(live.Version, patch.DeepCopy(), o, now)
	if err != nil {
		return nil, err
	}
	v, err := s.change(t, live, c, o.Subresource)
	if err == nil {
		live.remember(applierID(t, o), patch)
	}
	return v, err
}

// remember keeps what a manager applied and what it owns since.
func (r *record) remember(id managerID, patch *unstructured.Unstructured) {
	list, ok := r.owners.(*ownerList)
	if r.index == nil || !ok || r.index.managers[id] == nil {
		return
	}
	m := r.index.managers[id]
	m.applied, m.owned = patch.Object, list.list[m.at].FieldsV1
}
