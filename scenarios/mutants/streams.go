package mutants

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/contract"
	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
)

func streamingReporters() []Mutant {
	streams := func(s sim.StreamHooks) func() sim.Options { return hook(sim.TestHooks{Streams: s}) }
	return []Mutant{
		{
			Name: "stream-nothing-sent-again", Scenario: "stream-resets", Caught: []string{"steps[2].expect"}, Subject: streams(sim.StreamHooks{ForgetOnReconnect: true}),
			Mistake: "a reporter that sends each report once: the aggregator, or its successor, hears nothing of the node until the next tick",
		},
		{
			Name: "stream-probes-unheard", Scenario: "stream-cold-start-aggregator-last", Caught: []string{"steps[3].never"}, Subject: streams(sim.StreamHooks{ProbeUnheard: true}),
			Mistake: "a reporter that probes from its start, although there is nobody yet to report to",
		},
		{
			Name: "stream-and-apply", Scenario: "stream-plugin-fails", Caught: []string{"LEAST-PRIVILEGE"}, Subject: streams(sim.StreamHooks{WritesItself: true}),
			Mistake: "a reporter that applies its report besides, to be safe: its identity needs rights on the API after all",
		},
		{
			Name: "stream-generation-not-observed", Scenario: "stream-plugin-fails", Caught: []string{"steps[0].expect"},
			Subject: streams(sim.StreamHooks{Request: func(r *healthv1.ReportRequest) { r.ObservedGeneration = 0 }}),
			Mistake: "a reporter that does not say which configuration it has: no node is ever ready",
		},
		{
			Name: "stream-queue-and-flush", Scenario: "stream-load-balancer-black-hole", Caught: []string{"FRESH-ONLY"}, Virtual: publishing(queueAndFlush),
			Mistake: "a queue in front of the stream: after an outage of the aggregator the results of all of it are sent, the oldest first",
		},
		{
			Name: "stream-certificate-read-once", Scenario: "stream-credential-expires", Caught: []string{"CADENCE"}, Virtual: reporting(keepCredential),
			Mistake: "a TLS configuration that is made at the start: the certificate is renewed, and each new stream is refused with the old one",
		},
	}
}

// streamingAggregators is aggregators that serve streams wrongly, or show them wrongly.
func streamingAggregators() []Mutant {
	streams := func(s sim.StreamHooks) func() sim.Options { return hook(sim.TestHooks{Streams: s}) }
	truth := []string{"STREAM-TRUTH"}
	return []Mutant{
		{
			Name: "stream-ok-while-disconnected", Scenario: "stream-reporter-killed", Caught: truth, Subject: streams(sim.StreamHooks{DeafToDisconnects: true}),
			Mistake: "the last report for as long as no other one comes: a node whose reporter is gone goes on being healthy",
		},
		{
			Name: "stream-served-by-any-replica", Scenario: "stream-leader-killed", Caught: truth, Subject: streams(sim.StreamHooks{AnyReplica: true}),
			Mistake: "replicas that do not lead serve streams as well: each hears a part of the nodes, and the one that shows them does not hear the others",
		},
		{
			Name: "stream-outlives-the-lead", Scenario: "stream-lead-lost", Caught: truth, Subject: streams(sim.StreamHooks{OutlivesTerm: true}),
			Mistake: "a replica that loses the lease and keeps its streams, and writes what they bring: its successor waits for reporters in vain",
		},
		{
			Name: "stream-identity-not-verified", Scenario: "stream-speaks-for-its-node", Caught: []string{"steps[2].parallel[1].never"},
			Subject: streams(sim.StreamHooks{BelieveClaims: true}),
			Mistake: "the node as the client calls it, in place of that of its certificate: one reporter speaks for another's node",
		},
		{
			Name: "stream-certificate-forged", Scenario: "stream-speaks-for-its-node", Caught: []string{"steps[3]"},
			Subject: streams(sim.StreamHooks{AnyAuthority: true}),
			Mistake: "a server that asks for a certificate and takes any, RequireAnyClientCert in place of RequireAndVerifyClientCert: everybody can make one with the name of a reporter",
		},
		{
			Name: "stream-relayed-late", Scenario: "stream-load-balancer-black-hole", Caught: []string{"FRESH-ONLY"}, Subject: streams(sim.StreamHooks{RetryRelay: true}),
			Mistake: "an aggregator that tries each report until it is written: after an outage those of all of it are written, and none of them is true any more",
		},
		{
			Name: "stream-written-in-its-own-name", Scenario: "stream-plugin-fails", Caught: []string{"OWNERSHIP"},
			Virtual: aggregatesBy(func(a *startingAggregator) {
				changeRequests(&a.Host, patched(func(o *outgoing) { o.FieldManager = contract.AggregatorFieldManager }))
			}),
			Mistake: "reports under the aggregator's own field manager: an apply for one node removes those of all others",
		},
		{
			Name: "stream-connect-is-a-report", Scenario: "stream-reporter-killed", Caught: truth,
			Virtual: showing(func(s *contract.HealthStatus) {
				for i := range s.Replicas {
					if s.Replicas[i].Reason == contract.ReplicaConnected {
						s.Replicas[i].Status, s.Replicas[i].Reason = "True", contract.ReplicaHealthy
					}
				}
			}),
			Mistake: "a stream that stands taken for a healthy node, before anything was reported on it",
		},
		{
			Name: "stream-orphan-kept", Scenario: "stream-node-replaced", Caught: truth, Virtual: func() virtual.Options { return showing(keepsReplicas())() },
			Mistake: "replicas that are added and never removed: a node that is gone for good keeps the operator from being ready",
		},
		{
			Name: "stream-silent-node-left-out", Scenario: "stream-reporter-killed", Caught: truth,
			Virtual: showing(func(s *contract.HealthStatus) {
				s.Replicas = slices.DeleteFunc(s.Replicas, func(r contract.ReplicaHealth) bool { return r.Reason == contract.ReplicaDisconnected })
			}),
			Mistake: "replicas made of the streams that there are: a node whose reporter never connected is not missed",
		},
		{
			Name: "stream-ready-although-unknown", Scenario: "stream-reporter-killed", Caught: truth,
			Virtual: showing(func(s *contract.HealthStatus) {
				for _, r := range s.Replicas {
					if r.Status == "Unknown" {
						s.NotReadyNodes = slices.DeleteFunc(s.NotReadyNodes, func(n string) bool { return n == r.NodeName })
						s.ReadyNodes = append(s.ReadyNodes, r.NodeName)
					}
				}
			}),
			Mistake: "not ready only what is known to be broken: who is not heard counts as ready",
		},
		{
			Name: "stream-node-in-both-lists", Scenario: "stream-plugin-fails", Caught: truth,
			Virtual: showing(func(s *contract.HealthStatus) { s.ReadyNodes = append(s.ReadyNodes, s.NotReadyNodes...) }),
			Mistake: "two lists that are kept apart: a node that becomes unhealthy is added to one, and not removed from the other",
		},
	}
}

// showing is an aggregator whose EncryptionHealth is changed on its way out.
func showing(change func(*contract.HealthStatus)) func() virtual.Options {
	return aggregatesBy(func(a *startingAggregator) {
		changeRequests(&a.Host, func(o *outgoing) {
			if o.Verb != "update" || o.Subresource != "status" {
				return
			}
			var object map[string]json.RawMessage
			var status contract.HealthStatus
			if json.Unmarshal(o.Body, &object) != nil || json.Unmarshal(object["status"], &status) != nil {
				return
			}
			change(&status)
			text, err := json.Marshal(status)
			if err != nil {
				return
			}
			object["status"] = text
			if body, err := json.Marshal(object); err == nil {
				o.Body = body
			}
		})
	})
}

// keepsReplicas adds what was shown of nodes that are gone.
func keepsReplicas() func(*contract.HealthStatus) {
	known := map[string]bool{}
	return func(s *contract.HealthStatus) {
		gone := maps.Clone(known)
		for _, r := range s.Replicas {
			known[r.NodeName] = true
			delete(gone, r.NodeName)
		}
		for _, node := range slices.Sorted(maps.Keys(gone)) {
			s.Replicas = append(s.Replicas, contract.ReplicaHealth{NodeName: node, Status: "Unknown", Reason: contract.ReplicaDisconnected})
			s.NotReadyNodes = append(s.NotReadyNodes, node)
			s.Conditions[0].Status = "False"
		}
	}
}
