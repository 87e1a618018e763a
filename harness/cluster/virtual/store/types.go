package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kmsharness/kmsharness/ci/crds"
)

// Type is what the store knows of a resource.
type Type struct {
	Resource   schema.GroupVersionResource
	Kind       schema.GroupVersionKind
	Namespaced bool
	// Status is whether there is a status subresource: without it the status is written with all the rest.
	Status bool
	// BuiltIn kinds have no schema, keep the status that they are created with, and have no generation.
	BuiltIn bool
	// Columns print objects as the CRD says; nil for a built-in kind.
	Columns rest.TableConvertor
	// Unconditional allows updates without a resourceVersion.
	Unconditional bool

	schema *crdSchema // nil for a built-in kind
	merge  *mergers
}

// Types are the resources of an API server. They are never changed and may be shared by many stores.
type Types struct {
	byResource map[schema.GroupVersionResource]*Type
}

// loaded are the types of each variant that was asked for. They are made once per process: schemas and CEL rules take long to compile.
var loaded sync.Map

// LoadTypes is the types of the OpenShift CRDs of a variant, beside the built-in kinds that the harness uses.
func LoadTypes(variant crds.Variant) (*Types, error) {
	variant = cmp.Or(variant, crds.TechPreview)
	load, _ := loaded.LoadOrStore(variant, sync.OnceValues(func() (*Types, error) {
		list, err := crds.WithKMS(variant)
		if err != nil {
			return nil, err
		}
		return NewTypes(list)
	}))
	return load.(func() (*Types, error))()
}

// BuiltInTypes are some types without schemas, and no others.
func BuiltInTypes(list ...Type) (*Types, error) {
	t := &Types{byResource: map[schema.GroupVersionResource]*Type{}}
	for _, b := range list {
		b.BuiltIn = true
		if err := t.add(&b, managedfields.NewDeducedTypeConverter()); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// NewTypes is the types of some CRDs and further ones without schemas, beside the built-in kinds that the harness uses.
func NewTypes(list []*apiextensions.CustomResourceDefinition, further ...Type) (*Types, error) {
	t, err := BuiltInTypes(append(builtIns(), further...)...)
	if err != nil {
		return nil, err
	}
	for _, crd := range list {
		if err := t.addCRD(crd); err != nil {
			return nil, fmt.Errorf("CRD %s: %w", crd.Name, err)
		}
	}
	return t, nil
}

func builtIns() []Type {
	type kind struct {
		gv                 schema.GroupVersion
		resource, kind     string
		namespaced, status bool
	}
	core := schema.GroupVersion{Version: "v1"}
	rbac := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	admission := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	flow := schema.GroupVersion{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"}
	var all []Type
	for _, k := range []kind{
		{core, "nodes", "Node", false, true}, {core, "namespaces", "Namespace", false, true}, {core, "pods", "Pod", true, true},
		{core, "secrets", "Secret", true, false}, {core, "configmaps", "ConfigMap", true, false}, {core, "serviceaccounts", "ServiceAccount", true, false},
		{core, "events", "Event", true, false}, {core, "services", "Service", true, true},
		{rbac, "clusterroles", "ClusterRole", false, false}, {rbac, "clusterrolebindings", "ClusterRoleBinding", false, false},
		{rbac, "roles", "Role", true, false}, {rbac, "rolebindings", "RoleBinding", true, false},
		{admission, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", false, true},
		{admission, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", false, false},
		{flow, "flowschemas", "FlowSchema", false, true}, {flow, "prioritylevelconfigurations", "PriorityLevelConfiguration", false, true},
		{schema.GroupVersion{Group: "apiregistration.k8s.io", Version: "v1"}, "apiservices", "APIService", false, true},
		{schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}, "customresourcedefinitions", "CustomResourceDefinition", false, true},
		{schema.GroupVersion{Group: "migration.k8s.io", Version: "v1alpha1"}, "storageversionmigrations", "StorageVersionMigration", false, true},
		{schema.GroupVersion{Group: "storagemigration.k8s.io", Version: "v1"}, "storageversionmigrations", "StorageVersionMigration", false, true},
	} {
		all = append(all, Type{Resource: k.gv.WithResource(k.resource), Kind: k.gv.WithKind(k.kind), Namespaced: k.namespaced, Status: k.status, Unconditional: true})
	}
	leases := schema.GroupVersion{Group: "coordination.k8s.io", Version: "v1"}
	return append(all, Type{Resource: leases.WithResource("leases"), Kind: leases.WithKind("Lease"), Namespaced: true})
}

func (t *Types) addCRD(crd *apiextensions.CustomResourceDefinition) error {
	for _, v := range crd.Spec.Versions {
		if !v.Served || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		gv := schema.GroupVersion{Group: crd.Spec.Group, Version: v.Name}
		out := &Type{
			Resource:   gv.WithResource(crd.Spec.Names.Plural),
			Kind:       gv.WithKind(crd.Spec.Names.Kind),
			Namespaced: crd.Spec.Scope == apiextensions.NamespaceScoped,
			Status:     v.Subresources != nil && v.Subresources.Status != nil,
		}
		var err error
		if out.schema, err = newCRDSchema(v.Schema.OpenAPIV3Schema); err != nil {
			return err
		}
		if out.Columns, err = tableconvertor.New(v.AdditionalPrinterColumns); err != nil {
			return err
		}
		converter, err := typeConverter(out.Kind, out.schema.openAPI)
		if err != nil {
			return err
		}
		if err := t.add(out, converter); err != nil {
			return err
		}
	}
	return nil
}

func (t *Types) add(typ *Type, converter managedfields.TypeConverter) (err error) {
	if t.byResource[typ.Resource] != nil {
		return fmt.Errorf("resource %s: expected once", typ.Resource)
	}
	if typ.merge, err = newMergers(typ, converter); err != nil {
		return err
	}
	t.byResource[typ.Resource] = typ
	return nil
}

// All are the types, sorted by group, version and resource.
func (t *Types) All() []*Type {
	return slices.SortedFunc(maps.Values(t.byResource), func(a, b *Type) int { return strings.Compare(a.Resource.String(), b.Resource.String()) })
}

// Get is the type of a resource, or nil.
func (t *Types) Get(r schema.GroupVersionResource) *Type { return t.byResource[r] }

// of is the type of a resource, or the error of an API server that has no such resource.
func (t *Types) of(r schema.GroupVersionResource) (*Type, error) {
	if typ, ok := t.byResource[r]; ok {
		return typ, nil
	}
	return nil, noSuchResource()
}

// typeConverter makes the type that the merge code works by: the CRD's schema as OpenAPI, with the fields that every
// object has.
func typeConverter(kind schema.GroupVersionKind, crd *spec.Schema) (managedfields.TypeConverter, error) {
	root, meta := *crd, &spec.Schema{}
	if err := json.Unmarshal([]byte(objectMeta), meta); err != nil {
		return nil, fmt.Errorf("read the schema of metadata: %w", err)
	}
	root.Properties = maps.Clone(crd.Properties)
	root.Properties["apiVersion"], root.Properties["kind"] = *spec.StringProperty(), *spec.StringProperty()
	root.Properties["metadata"] = *spec.RefSchema("#/definitions/" + objectMetaName)
	root.VendorExtensible = spec.VendorExtensible{Extensions: maps.Clone(crd.Extensions)}
	root.AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind},
	})
	c, err := managedfields.NewTypeConverter(map[string]*spec.Schema{kind.Kind: &root, objectMetaName: meta}, false)
	if err != nil {
		return nil, fmt.Errorf("make a type of the schema: %w", err)
	}
	return c, nil
}

const objectMetaName = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

// objectMeta is how the metadata of an object are merged.
const objectMeta = `{"type":"object","properties":{
"annotations":{"type":"object","additionalProperties":{"type":"string"}},
"creationTimestamp":{"type":"string","format":"date-time"},
"deletionGracePeriodSeconds":{"type":"integer","format":"int64"},
"deletionTimestamp":{"type":"string","format":"date-time"},
"finalizers":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"},
"generateName":{"type":"string"},
"generation":{"type":"integer","format":"int64"},
"labels":{"type":"object","additionalProperties":{"type":"string"}},
"managedFields":{"type":"array","x-kubernetes-list-type":"atomic","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},
"name":{"type":"string"},
"namespace":{"type":"string"},
"ownerReferences":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["uid"],"items":{"type":"object",
  "x-kubernetes-map-type":"atomic","properties":{"apiVersion":{"type":"string"},"blockOwnerDeletion":{"type":"boolean"},
  "controller":{"type":"boolean"},"kind":{"type":"string"},"name":{"type":"string"},"uid":{"type":"string"}}}},
"resourceVersion":{"type":"string"},
"selfLink":{"type":"string"},
"uid":{"type":"string"}}}`
