package local

import (
	"strings"

	"github.com/kmsharness/kmsharness/contract"
)

// recorderUser is the identity of the harness's own marker requests and watches.
const recorderUser = "kmsharness-recorder"

// auditPolicy keeps what the checker needs and nothing else: every request of the system under test, every write to the
// objects that it shares with others, with bodies, and the markers. A request of any other kind is not logged, so the
// log of an idle control plane does not grow.
func auditPolicy() []byte {
	return []byte(strings.NewReplacer(
		"AGGREGATOR", contract.AggregatorIdentity, "REPORTERS", contract.ReporterGroup, "RECORDER", recorderUser,
	).Replace(`apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - {group: operator.openshift.io}
  - {group: config.openshift.io}
- level: Metadata
  userGroups: ["REPORTERS"]
- level: Metadata
  users: ["AGGREGATOR"]
- level: Metadata
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
