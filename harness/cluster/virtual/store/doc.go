// Package store is the objects of an API server in memory. It keeps objects with uid, resourceVersion,
// generation and managedFields, merges applies, returns the errors of a real API server, and logs every change. Its
// state depends only on its inputs: it has no clock, goroutine or randomness, and the time is an argument of every
// write. It is not safe for concurrent use.
//
//	types, err := store.LoadTypes(crds.TechPreview) // once per process: the schemas of the real CRDs
//	s := store.New(types)
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
// A Version is one immutable state of one object. Body is its content without managedFields, shared and not to be
// changed; Object is a complete copy with managedFields, whose cost grows with the size of the object.
//
// Applies are merged by Kubernetes' own code, k8s.io/apimachinery/pkg/util/managedfields, with a type from the CRD's
// schema. Its cost grows with the number of managers of the object; an apply that repeats the manager's last with other values
// does without it. Tests with random histories check that objects and errors are those of a real API server.
//
// Objects of a CRD are pruned, completed and validated, by CEL rules too, by Kubernetes' own code,
// k8s.io/apiextensions-apiserver/pkg/apiserver. The store leaves out admission, RBAC, conversion between versions,
// finalizers and dry run. Built-in kinds have no schema here: a manager owns their lists as a whole.
package store
