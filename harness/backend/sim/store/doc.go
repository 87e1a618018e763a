// Package store is the simulator's model of what an API server does with objects: it keeps them, with uid, resourceVersion,
// generation and managedFields, merges applies, refuses what a real API server refuses with the same errors, and logs every
// change. It is a value of its inputs: there is no clock, no goroutine and no randomness in it, and the time is an argument of
// every write. It is not for concurrent use.
//
//	types, err := store.LoadTypes(crds.TechPreview) // once per process: the schemas of the real CRDs
//	s := store.New(types, store.Options{SSA: store.Real})
//	v, err := s.Create(now, resource, object, "manager")
//	v, err = s.Apply(now, resource, patch, store.ApplyOptions{Manager: "manager", Force: true, Subresource: "status"})
//	v, err = s.Update(now, resource, object, store.UpdateOptions{Manager: "manager", Subresource: ""})
//	v, err = s.JSONPatch(now, key, patch, store.UpdateOptions{Manager: "manager", Subresource: "status"})
//	v, err = s.Delete(key, store.Preconditions{})
//	v, err = s.Get(key)
//	list, revision, err := s.List(resource, namespace)
//	events, err := s.Since(revision) // every change after it, in order; 410 Expired once compacted
//	s.Compact(revision)
//
// A Version is one state of one object, for ever: Body is its content without managedFields, shared and not to be changed;
// Object is a whole copy with managedFields, which costs as much as the object is large.
//
// Apply has two implementations. Real is Kubernetes' own merge code, k8s.io/apimachinery/pkg/util/managedfields, under a type
// made from the CRD's schema. Its cost grows with the number of managers of the object. Model answers the common case, a
// manager that applies the same fields with other values, from an index of who owns what, and gives every other case to the
// real code. That both give equal objects and errors after every operation is
// tested on random histories, and so is that they are those of a real API server (with KUBEBUILDER_ASSETS).
//
// What a real API server does besides and this does not: admission, RBAC, conversion between versions, finalizers, CEL rules other than those in rules.go, dry run.
// Built-in kinds have no schema here: their lists are owned as a whole.
package store
