package live

import (
	"strings"

	"github.com/kmsharness/kmsharness/contract"
)

// recorderUser is the identity of the harness's own marker requests and watches.
const recorderUser = "kmsharness-recorder"

// AuditPolicy keeps what the checker needs and nothing else: every request of the system under test, every write to the
// objects that it shares with others, with bodies, and the markers. A request of any other kind is not logged, so the
// log of an idle control plane does not grow.
func AuditPolicy() []byte {
	return []byte(strings.NewReplacer(
		"AGGREGATOR", contract.AggregatorIdentity, "REPORTERS", contract.ReporterGroup, "RECORDER", recorderUser,
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
- level: Metadata
  omitStages: [RequestReceived]
  userGroups: ["REPORTERS"]
- level: Metadata
  omitStages: [RequestReceived]
  users: ["AGGREGATOR"]
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
	return strings.HasSuffix(resource, ".operator.openshift.io") || resource == "clusteroperators.config.openshift.io"
}
