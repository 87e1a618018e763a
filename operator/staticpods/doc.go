// Package staticpods is the operator's Executor for kube-apiserver's static pods in OpenShift, which it meets through the API alone.
//
// The operator wants one configuration of all pods: the Secret DesiredName. OpenShift's installer makes a revision of each change, and rolls it out to one
// node after another. What a node has is that of the revision of its ready pod. So plugins and reporter are the installer's to start and to stop in order,
// and all that must survive a restart of the operator is in the API.
//
// The package has the names and the form of these objects, which a cluster around an operator shares. It decides nothing: see operator/core.
package staticpods
