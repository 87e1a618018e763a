package live

import (
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// recorderUser is the identity of the harness's own marker requests and watches.
const recorderUser = "kmsharness-recorder"

// AuditPolicy keeps what the checker needs and nothing else: every request of the system under test, every write to the
// objects that it shares with others, with bodies, and the markers. A request of any other kind is not logged, so the
// log of an idle control plane does not grow.
func AuditPolicy() []byte {
	return []byte(strings.NewReplacer(
		"AGGREGATOR", contract.AggregatorIdentity, "REPORTERS", contract.ReporterGroup, "ADMINISTRATORS", adminReporters, "RECORDER", recorderUser, "DATA", dataNamespace,
		"REPORTER-ACCOUNT", contract.ReporterAccount(contract.Namespace), "ADMIN-ACCOUNT", contract.ReporterAccount(administrators),
	).Replace(`apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
# With the stage RequestReceived: an API server that is killed may have carried out a write that it never logs.
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - {group: operator.openshift.io}
  - {group: config.openshift.io}
# Whoever writes or reads the objects of scenarios: what each envelope operation was for. Never with bodies, which are secret.
- level: Metadata
  omitStages: [RequestReceived]
  verbs: [get, list, create, update, patch, delete]
  namespaces: ["DATA"]
  resources:
  - {group: "", resources: [secrets]}
- level: Metadata
  omitStages: [RequestReceived]
  userGroups: ["REPORTERS", "ADMINISTRATORS"]
- level: Metadata
  omitStages: [RequestReceived]
  users: ["AGGREGATOR", "REPORTER-ACCOUNT", "ADMIN-ACCOUNT"]
- level: Metadata
  omitStages: [RequestReceived]
  users: ["RECORDER"]
  nonResourceURLs: ["` + markerPath + `"]
- level: None
`))
}

// markerPath is asked for by marker requests; its answer costs nothing.
const markerPath = "/version"

// observed says whether writes to a resource ("plural.group") are recorded whoever makes them.
func observed(resource string) bool {
	return strings.HasSuffix(resource, ".operator.openshift.io") || resource == "clusteroperators.config.openshift.io" ||
		resource == contract.HealthResource+"."+contract.HealthGroup
}

// traced says whether a request is recorded because it may have been an envelope operation.
func traced(r *history.Request) bool { return r.Resource == "secrets" && r.Namespace == dataNamespace }
