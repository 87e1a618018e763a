package store

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func (s *Store) applyModel(now time.Time, t *Type, live *record, patch *unstructured.Unstructured, o ApplyOptions) (*Version, error) {
	c, err := t.merge.apply(live.Version, patch, o, now)
	if err != nil {
		return nil, err
	}
	return s.change(now, t, live, c, o.Subresource)
}
