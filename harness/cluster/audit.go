package cluster

import (
	"strings"

	"github.com/kmsharness/kmsharness/contract"
)

// RecorderUser is the identity of the harness's own marker requests and watches.
const RecorderUser = "kmsharness-recorder"

// AuditPolicy logs what the checker needs and nothing else: every request of the system under test, every write to the
// objects that it shares with others, with bodies, and the markers. A request of any other kind is not logged, so that
// the log of an idle control plane does not grow, and reading it costs nothing.
func AuditPolicy() []byte {
	return []byte(strings.NewReplacer(
		"AGGREGATOR", contract.AggregatorIdentity, "REPORTERS", contract.ReporterGroup, "TOKENS", contract.TokenGroup, "ADMINISTRATORS", AdminReporters, "RECORDER", RecorderUser, "DATA", DataNamespace,
		"REPORTER-ACCOUNT", contract.ReporterAccount(contract.Namespace), "ADMIN-ACCOUNT", contract.ReporterAccount(Administrators),
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
  userGroups: ["REPORTERS", "TOKENS", "ADMINISTRATORS"]
- level: Metadata
  omitStages: [RequestReceived]
  users: ["AGGREGATOR", "REPORTER-ACCOUNT", "ADMIN-ACCOUNT"]
- level: Metadata
  omitStages: [RequestReceived]
  users: ["RECORDER"]
  nonResourceURLs: ["` + MarkerPath + `"]
- level: None
`))
}

// MarkerPath is asked for by marker requests; its answer costs nothing.
const MarkerPath = "/version"

// AdminReporters is the group of reporters that are administrators, which the audit policy names: of what reporters ask, more is logged.
const AdminReporters = "kmsharness:reporters"
