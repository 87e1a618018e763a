package streams

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// Replica of a report, with the generation that its reporter observed. It is an error if the EncryptionHealth cannot show it.
func Replica(report contract.Report, generation int64) (contract.ReplicaHealth, error) {
	r := contract.ReplicaHealth{NodeName: report.Node, Status: "True", Reason: contract.ReplicaHealthy, ObservedGeneration: generation}
	var bad []string
	for _, e := range report.Entries {
		if e.Status != contract.StatusHealthy {
			bad = append(bad, fmt.Sprintf("%s is %s", e.KeyID, e.Status))
		}
	}
	if len(bad) > 0 {
		r.Status, r.Reason, r.Message = "False", contract.ReplicaUnhealthy, strings.Join(bad, ", ")
	}
	return r, r.Validate()
}

// Status is what the EncryptionHealth should say of a picture, and whether that differs from what stands there. generation is that of its spec. A node is
// ready if its replica is True and has observed this generation (docs/contract.md, "Streaming"). While KMS is not an active encryption type, nothing is
// expected of anybody.
func (p Picture) Status(standing contract.HealthStatus, generation int64, active bool, now time.Time) (status contract.HealthStatus, changed bool) {
	before := map[string]contract.ReplicaHealth{}
	for _, r := range standing.Replicas {
		before[r.NodeName] = r
	}
	status.ObservedGeneration = generation
	if active {
		for _, node := range slices.Sorted(maps.Keys(p.Replicas)) {
			r := p.Replicas[node]
			if r.Validate() != nil { // one replica that the API server refuses would take all others with it
				r = unknown(node, contract.ReplicaConnected)
			}
			r.LastTransitionTime = transition(before[node].Status, before[node].LastTransitionTime, r.Status, now)
			status.Replicas = append(status.Replicas, r)
			if r.Status == "True" && r.ObservedGeneration == generation {
				status.ReadyNodes = append(status.ReadyNodes, node)
			} else {
				status.NotReadyNodes = append(status.NotReadyNodes, node)
			}
		}
		status.Conditions = []contract.HealthCondition{ready(status, standing.Conditions, now)}
	}
	return status, !equal(status, standing)
}

func ready(s contract.HealthStatus, standing []contract.HealthCondition, now time.Time) contract.HealthCondition {
	c := contract.HealthCondition{Type: contract.HealthReady, Status: "True", Reason: contract.ReplicaHealthy, ObservedGeneration: s.ObservedGeneration}
	if n := len(s.NotReadyNodes); n > 0 {
		c.Status, c.Reason, c.Message = "False", "NodesNotReady", fmt.Sprintf("%d of %d nodes are not ready", n, n+len(s.ReadyNodes))
	}
	var old contract.HealthCondition
	if i := slices.IndexFunc(standing, func(c contract.HealthCondition) bool { return c.Type == contract.HealthReady }); i >= 0 {
		old = standing[i]
	}
	c.LastTransitionTime = transition(old.Status, old.LastTransitionTime, c.Status, now)
	return c
}

// transition is the time of the last change of a status, which moves with the status only.
func transition(old, since, status string, now time.Time) string {
	if old == status && since != "" {
		return since
	}
	return now.UTC().Truncate(time.Second).Format(time.RFC3339)
}

func equal(a, b contract.HealthStatus) bool {
	return a.ObservedGeneration == b.ObservedGeneration && slices.Equal(a.Conditions, b.Conditions) && slices.Equal(a.Replicas, b.Replicas) &&
		slices.Equal(a.ReadyNodes, b.ReadyNodes) && slices.Equal(a.NotReadyNodes, b.NotReadyNodes)
}
