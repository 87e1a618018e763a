// Package revision stores the operator's state: encryption keys, and revisions of encryption and plugin configurations,
// as objects in openshift-config-managed.
//
// It has the values, their form as Secrets and ConfigMaps with the names and labels of OpenShift, strict reading of
// these objects, the selection of the newest revision and of those to prune, and the names of sockets. operator/core
// decides when a key or a revision is created. The package is pure.
//
// The newest revision is in force for every API server pod, whatever the revision of the pod: an API server that was
// rolled back must still read objects that were written since.
package revision
