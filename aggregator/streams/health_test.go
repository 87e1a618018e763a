package streams

import (
	"slices"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

func at(s int64) time.Time { return time.Unix(1e9+s, 999) }

// S1-07, S1-08: ready is who is True at the present generation. Each node is in one list, sorted.
func TestLists(t *testing.T) {
	p := Picture{Replicas: map[string]contract.ReplicaHealth{
		"cp-3": {NodeName: "cp-3", Status: "True", Reason: contract.ReplicaHealthy, ObservedGeneration: 2},
		"cp-1": {NodeName: "cp-1", Status: "True", Reason: contract.ReplicaHealthy, ObservedGeneration: 2},
		"cp-2": {NodeName: "cp-2", Status: "True", Reason: contract.ReplicaHealthy, ObservedGeneration: 1},
		"cp-4": {NodeName: "cp-4", Status: "False", Reason: contract.ReplicaUnhealthy, ObservedGeneration: 2},
		"cp-5": unknown("cp-5", contract.ReplicaDisconnected),
	}}
	for _, c := range []struct {
		generation int64
		ready, not []string
	}{
		{2, []string{"cp-1", "cp-3"}, []string{"cp-2", "cp-4", "cp-5"}},
		{1, []string{"cp-2"}, []string{"cp-1", "cp-3", "cp-4", "cp-5"}},
		{3, nil, []string{"cp-1", "cp-2", "cp-3", "cp-4", "cp-5"}},
	} {
		s, changed := p.Status(contract.HealthStatus{}, c.generation, true, at(0))
		if !changed || !slices.Equal(s.ReadyNodes, c.ready) || !slices.Equal(s.NotReadyNodes, c.not) || s.ObservedGeneration != c.generation {
			t.Errorf("generation %d: %+v", c.generation, s)
		}
		if got := s.Conditions[0]; got.Status != "False" || got.Reason != "NodesNotReady" || got.ObservedGeneration != c.generation {
			t.Errorf("generation %d: %+v", c.generation, got)
		}
	}
}

// A time of transition moves with its status and with nothing else, and nothing that stands there already is written.
func TestTransitionTimes(t *testing.T) {
	p := func(status string, generation int64) Picture {
		return Picture{Replicas: map[string]contract.ReplicaHealth{"cp-1": {NodeName: "cp-1", Status: status, Reason: contract.ReplicaHealthy, ObservedGeneration: generation}}}
	}
	first, _ := p("True", 1).Status(contract.HealthStatus{}, 1, true, at(0))
	same, changed := p("True", 1).Status(first, 1, true, at(5))
	if changed || !equal(first, same) {
		t.Errorf("the same picture changes %+v to %+v", first, same)
	}
	next, changed := p("True", 2).Status(first, 2, true, at(9))
	if !changed || next.Replicas[0].LastTransitionTime != first.Replicas[0].LastTransitionTime || next.Conditions[0].LastTransitionTime != first.Conditions[0].LastTransitionTime {
		t.Errorf("another generation: changed %v, %+v", changed, next)
	}
	bad, _ := p("False", 2).Status(next, 2, true, at(12))
	if want := at(12).UTC().Format(time.RFC3339); bad.Replicas[0].LastTransitionTime != want || bad.Conditions[0].LastTransitionTime != want {
		t.Errorf("another status: %+v, want %s", bad, want)
	}
}

// While KMS is not active nothing is expected of anybody.
func TestNotActive(t *testing.T) {
	p := Picture{Replicas: map[string]contract.ReplicaHealth{"cp-1": unknown("cp-1", contract.ReplicaDisconnected)}}
	before, _ := p.Status(contract.HealthStatus{}, 1, true, at(0))
	s, changed := p.Status(before, 1, false, at(1))
	if !changed || len(s.Replicas)+len(s.ReadyNodes)+len(s.NotReadyNodes)+len(s.Conditions) > 0 {
		t.Errorf("changed %v: %+v", changed, s)
	}
}

func TestReported(t *testing.T) {
	r := reported(reportOf("cp-1", contract.StatusHealthy, contract.StatusUnhealthy, contract.StatusError), 3)
	if want := (contract.ReplicaHealth{NodeName: "cp-1", Status: "False", Reason: contract.ReplicaUnhealthy, Message: "2 is unhealthy, 3 is error", ObservedGeneration: 3}); r != want {
		t.Errorf("got %+v, want %+v", r, want)
	}
}
