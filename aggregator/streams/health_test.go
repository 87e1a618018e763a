package streams

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/kmsharness/kmsharness/ci/crds"
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
	r, err := Replica(reportOf("cp-1", contract.StatusHealthy, contract.StatusUnhealthy, contract.StatusError), 3)
	if want := (contract.ReplicaHealth{NodeName: "cp-1", Status: "False", Reason: contract.ReplicaUnhealthy, Message: "2 is unhealthy, 3 is error", ObservedGeneration: 3}); r != want || err != nil {
		t.Errorf("got %+v, %v, want %+v", r, err, want)
	}
}

// schema is that of the EncryptionHealth.
func schema(t *testing.T) func(contract.HealthStatus) error {
	t.Helper()
	list, err := crds.List(crds.TechPreview)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(c *apiextensionsv1.CustomResourceDefinition) bool {
		return c.Spec.Names.Kind == contract.HealthKind
	})
	text, err := json.Marshal(list[i].Spec.Versions[0].Schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(s contract.HealthStatus) error {
		text, err := json.Marshal(map[string]any{"status": s})
		if err != nil {
			return err
		}
		object, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return err
		}
		return compiled.Validate(object)
	}
}

// Validate refuses what the schema of the EncryptionHealth refuses, and nothing else.
func TestReplicasAreValidatedAsTheSchemaDoes(t *testing.T) {
	refuses := schema(t)
	good := contract.ReplicaHealth{NodeName: "cp-1", Status: "True", Reason: contract.ReplicaHealthy, LastTransitionTime: "2026-01-01T00:00:00Z"}
	for name, change := range map[string]func(*contract.ReplicaHealth){
		"as it is":                   func(*contract.ReplicaHealth) {},
		"generation -1":              func(r *contract.ReplicaHealth) { r.ObservedGeneration = -1 },
		"the least generation":       func(r *contract.ReplicaHealth) { r.ObservedGeneration = math.MinInt64 },
		"the greatest generation":    func(r *contract.ReplicaHealth) { r.ObservedGeneration = math.MaxInt64 },
		"no node":                    func(r *contract.ReplicaHealth) { r.NodeName = "" },
		"a long node":                func(r *contract.ReplicaHealth) { r.NodeName = strings.Repeat("é", 253) },
		"a node that is too long":    func(r *contract.ReplicaHealth) { r.NodeName = strings.Repeat("n", 254) },
		"another status":             func(r *contract.ReplicaHealth) { r.Status = "true" },
		"no status":                  func(r *contract.ReplicaHealth) { r.Status = "" },
		"no reason":                  func(r *contract.ReplicaHealth) { r.Reason = "" },
		"a reason that is too long":  func(r *contract.ReplicaHealth) { r.Reason = strings.Repeat("r", 1025) },
		"a long message":             func(r *contract.ReplicaHealth) { r.Message = strings.Repeat("é", 32768) },
		"a message that is too long": func(r *contract.ReplicaHealth) { r.Message = strings.Repeat("m", 32769) },
	} {
		r := good
		change(&r)
		if own, schema := r.Validate(), refuses(contract.HealthStatus{Replicas: []contract.ReplicaHealth{r}}); (own == nil) != (schema == nil) {
			t.Errorf("%s: Validate says %v, the schema %v", name, own, schema)
		}
	}
}

// A replica that is invalid all the same, of a server that does not validate, leaves those of the others as they are.
func TestAnInvalidReplicaAffectsItselfOnly(t *testing.T) {
	refuses := schema(t)
	s, id := opened(t)
	other, _, err := s.Open("cp-2")
	if err != nil {
		t.Fatal(err)
	}
	s.Reported(id, replicaOf(reportOf("cp-1", contract.StatusHealthy), -1))
	s.Reported(other, replicaOf(reportOf("cp-2", contract.StatusHealthy), 1))
	status, _ := s.Picture().Status(contract.HealthStatus{}, 1, true, at(0))
	if err := refuses(status); err != nil {
		t.Errorf("the EncryptionHealth would be refused: %v", err)
	}
	if !slices.Equal(status.ReadyNodes, []string{"cp-2"}) || !slices.Equal(status.NotReadyNodes, []string{"cp-1"}) {
		t.Errorf("got %+v", status)
	}
}
