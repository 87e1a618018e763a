// Package agent is the program kmsharness-agent: the harness's own container in each pod that the backend cluster makes,
// and the client of it.
//
// The agent gives a harness outside the cluster what it has on one machine: copies of journals and logs while they are
// written, connections to sockets, files in the pod, and a recorded connection to the API server. Reporters and
// aggregators use that connection instead of the API server's address: it ends TLS, verifies their client certificate,
// passes their requests on under their own identity by impersonation, and logs them as an audit log does. It can also
// break the connection (harness/netfault). The API server authorises each request as that of the reporter.
//
// The program is also the supervisor (harness/supervisor) of the other containers, which it is copied into, so that one
// image is enough. The package knows nothing of scenarios; harness/backend/cluster makes the pods.
package agent
