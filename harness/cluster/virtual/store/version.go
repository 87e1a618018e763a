package store

import (
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Key names an object. Namespace is empty for a cluster-scoped one.
type Key struct {
	Resource  schema.GroupVersionResource
	Namespace string
	Name      string
}

// Version is one state of one object. It never changes.
type Version struct {
	Key Key
	// Revision is the resourceVersion as a number.
	Revision   int64
	UID        types.UID
	Generation int64
	Created    time.Time

	body    map[string]any // without managedFields and resourceVersion
	owners  []metav1.ManagedFieldsEntry
	managed *managed
	// ownership is the revision since which everybody owns the fields that they own.
	ownership int64
}

// managed is managedFields as decoded JSON. A version is shown to policies, watches and recorders.
type managed struct {
	once   sync.Once
	shared *shared
	fields []any
}

func (v *Version) managedFields() []any {
	v.managed.once.Do(func() {
		for _, e := range v.owners {
			v.managed.fields = append(v.managed.fields, v.managed.shared.decoded(e))
		}
	})
	return v.managed.fields
}

// shared are entries of managedFields, without their times, as decoded JSON. Most writes change nothing but one time.
type shared struct {
	mu      sync.Mutex
	entries map[metav1.ManagedFieldsEntry]map[string]any
}

// mostShared bounds the entries that are remembered: all are forgotten when there are more.
const mostShared = 1000

func (s *shared) decoded(e metav1.ManagedFieldsEntry) map[string]any {
	at := e.Time
	e.Time = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.entries[e]
	if out == nil {
		out, _ = runtime.DefaultUnstructuredConverter.ToUnstructured(&e) // managedFields are JSON: the store made or decoded them
		if s.entries == nil || len(s.entries) == mostShared {
			s.entries = map[metav1.ManagedFieldsEntry]map[string]any{}
		}
		s.entries[e] = out
	}
	if at == nil {
		return out
	}
	return with(out, "time", at.ToUnstructured())
}

// Body is the object as decoded JSON, without metadata.managedFields and metadata.resourceVersion. It is shared by
// everybody and is not to be changed.
func (v *Version) Body() map[string]any { return v.body }

// ResourceVersion is the revision as clients see it.
func (v *Version) ResourceVersion() string { return strconv.FormatInt(v.Revision, 10) }

// Object is a copy of the whole object, as a client gets it. It is the caller's.
func (v *Version) Object() *unstructured.Unstructured { return v.Shown().DeepCopy() }

// Shown is Object for who only reads it: the fields of its metadata, and all others, are shared.
func (v *Version) Shown() *unstructured.Unstructured {
	meta := with(metadataOf(v.body), "resourceVersion", v.ResourceVersion())
	if fields := v.managedFields(); len(fields) > 0 {
		meta["managedFields"] = fields
	}
	return &unstructured.Unstructured{Object: with(v.body, "metadata", meta)}
}

// Size is what the object takes in etcd, in bytes.
func (v *Version) Size() int {
	o := v.Shown().Object
	delete(o["metadata"].(map[string]any), "resourceVersion") // which etcd keeps beside it
	return jsonSize(o)
}
