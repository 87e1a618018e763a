package store

import (
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// prune removes what the schema does not declare, as an API server does with what it is sent to create or update.
func (t *Type) prune(o *unstructured.Unstructured) {
	if t.schema != nil {
		pruning.Prune(o.Object, t.schema.structural, true)
		defaulting.PruneNonNullableNullsWithoutDefaults(o.Object, t.schema.structural)
	}
}

// Default implements runtime.ObjectDefaulter for the merge code.
func (t *Type) Default(o runtime.Object) {
	if u, ok := o.(*unstructured.Unstructured); ok && t.schema != nil {
		defaulting.Default(u.Object, t.schema.structural)
	}
}

// validate is what an API server finds wrong with an object; old is nil for a new one. Of a write to the status nothing else
// can have changed; repeats is that of the candidate.
func (t *Type) validate(o *unstructured.Unstructured, old *Version, subresource string, repeats any) field.ErrorList {
	var was map[string]any
	if old != nil {
		was = old.body
	}
	var errs field.ErrorList
	if subresource == "" {
		errs = t.validateMetadata(o, old)
	}
	if t.schema == nil {
		return errs
	}
	return append(errs, t.schema.validate(o.Object, was, subresource, repeats)...)
}

func (t *Type) validateMetadata(o *unstructured.Unstructured, old *Version) field.ErrorList {
	meta := field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessor(o, t.Namespaced, validation.NameIsDNSSubdomain, meta)
	if old == nil {
		return errs
	}
	return append(errs, validation.ValidateObjectMetaAccessorUpdate(versioned(o.Object, old), versioned(old.body, old), meta)...)
}

// versioned is an object with the resourceVersion of a version.
func versioned(body map[string]any, v *Version) *unstructured.Unstructured {
	meta := with(metadataOf(body), "resourceVersion", v.ResourceVersion())
	return &unstructured.Unstructured{Object: with(body, "metadata", meta)}
}
