// Package operator carries out what operator/core decides, for one API server of a real control plane.
//
// What lives here: watches of the APIServer configuration, of keys and revisions in openshift-config-managed, of credentials in
// openshift-config and of the reports on the operator's CR; their writing; conditions; migrations and pre-flight checks in the background.
// What does not: any decision, and how plugins, reporters and API servers are started (the Executor's).
//
// One goroutine looks, decides and acts. It may be killed anywhere: a new one goes on from what it finds. What it made by mistake from an
// old cache the API server refuses, because names and resource versions say what it believed in.
package operator
