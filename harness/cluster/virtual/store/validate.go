package store

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validate is what an API server finds wrong with an object; old is nil for a new one. Of a write to the status nothing else
// can have changed.
func (t *Type) validate(o *unstructured.Unstructured, old *Version, subresource string) field.ErrorList {
	if subresource == "status" {
		if _, ok := o.Object["status"]; !ok || t.schema == nil {
			return nil
		}
		errs := t.schema.fields["status"].check(nil, o.Object["status"], old.body["status"])
		for _, e := range errs { // the texts name the field within the status, as an API server's do
			e.Field = strings.TrimSuffix("status."+strings.TrimPrefix(e.Field, "<nil>"), ".")
		}
		return t.blockRules(errs)
	}
	meta := field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessor(o, t.Namespaced, validation.NameIsDNSSubdomain, meta)
	var before any
	if old != nil {
		before = old.body
		errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(versioned(o.Object, old), versioned(old.body, old), meta)...)
	}
	return t.blockRules(append(errs, t.schema.check(nil, o.Object, before)...))
}

// versioned is an object with the resourceVersion of a version.
func versioned(body map[string]any, v *Version) *unstructured.Unstructured {
	meta := with(metadataOf(body), "resourceVersion", v.ResourceVersion())
	return &unstructured.Unstructured{Object: with(body, "metadata", meta)}
}
