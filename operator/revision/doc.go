// Package revision is the operator's memory: encryption keys, and revisions of encryption and plugin configurations, as objects in
// openshift-config-managed.
//
// What lives here: the values, their form as Secrets and ConfigMaps with the names and labels of OpenShift, strict reading of the same,
// which revision is the newest, which may be pruned, and the names of sockets. What does not: when a key or a revision is made
// (operator/core), and the API server that keeps them. It is pure.
//
// The newest revision is in force for every API server pod, of whatever revision that is itself: an API server that was rolled back
// must still read what was written after the revision that it was rolled back to.
package revision
