// Package operator carries out the decisions of operator/core for one API server of a control plane.
//
// It watches the APIServer configuration, the keys and revisions in openshift-config-managed, the credentials in
// openshift-config, and the reports on the operator's CR. It writes keys, revisions and conditions, and runs migrations
// and pre-flight checks in the background. It makes no decisions. It meets the cluster through the API alone: what it
// wants of the API server's pods is one Secret, of which OpenShift's installer makes revisions. What a node has is that
// of the revision of its ready pod.
//
// One goroutine observes, decides and acts. It may be killed at any point: a new one continues from the objects that it
// finds. Names and resource versions contain what a write is based on, so the API server refuses a write that is based
// on an outdated cache.
package operator
