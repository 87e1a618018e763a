package store

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// cloneObject copies what a caller gave. Numbers become what decoded JSON has.
func cloneObject(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if o == nil || o.Object == nil {
		return nil, fmt.Errorf("no object was given")
	}
	c, err := clone(o.Object)
	if err != nil {
		return nil, err
	}
	copied := &unstructured.Unstructured{Object: c.(map[string]any)}
	return copied, checkMetadata(copied)
}

func checkMetadata(o *unstructured.Unstructured) error {
	if m, ok := o.Object["metadata"]; ok {
		if _, isMap := m.(map[string]any); !isMap {
			return fmt.Errorf("metadata is %T, expected an object", m)
		}
	}
	return nil
}

func clone(v any) (any, error) {
	switch v := v.(type) {
	case nil, string, bool, int64, float64:
		return v, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			c, err := clone(item)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", k, err)
			}
			out[k] = c
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			c, err := clone(item)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			out[i] = c
		}
		return out, nil
	case int:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case json.Number:
		n, err := v.Int64()
		return n, err
	}
	return nil, fmt.Errorf("%T is nothing that JSON has", v)
}

// with is a copy of an object in which one field is another; nil removes it.
func with(o map[string]any, field string, v any) map[string]any {
	out := make(map[string]any, len(o)+1)
	maps.Copy(out, o)
	if out[field] = v; v == nil {
		delete(out, field)
	}
	return out
}
