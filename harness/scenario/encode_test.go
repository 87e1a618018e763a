package scenario_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// TestEncodeKeepsSelectors: whose clock, requests and watches are meant is still there after a scenario was written as a file.
func TestEncodeKeepsSelectors(t *testing.T) {
	var steps strings.Builder
	want := []scenario.Selector{{Node: "cp-1"}, {Role: "aggregator"}, {Role: "reporter", Node: "cp-2"}, {Node: "cp-3"}}
	for _, s := range []string{"clock: {node: cp-1, mode: ahead, by: 2I}", "clock: {role: aggregator, mode: restore}",
		"refuse: {role: reporter, node: cp-2, mode: too-many-requests, retryAfter: 2, count: 3, for: 2I, verb: patch}", "watches: {node: cp-3, mode: late, by: 2I}"} {
		steps.WriteString("  - " + s + "\n")
	}
	text := "apiVersion: kmsharness.io/v1alpha1\nkind: Scenario\nmetadata: {name: kept, title: Kept., area: scale}\nspec:\n  steps:\n" + steps.String()
	p := parser(t)
	s, err := p.Parse("kept.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Encode()
	if err == nil {
		s, err = p.Parse("kept.yaml", again)
	}
	if err != nil {
		t.Fatalf("%v in\n%s", err, again)
	}
	var got []scenario.Selector
	for _, a := range s.Actions() {
		got = append(got, a.Process)
	}
	if !slices.Equal(got, want) {
		t.Errorf("selectors %+v, expected %+v, in\n%s", got, want, again)
	}
}

// TestEncodeKeepsTheUnion: how the ClusterOperator is made is still there after a scenario was written as a file.
func TestEncodeKeepsTheUnion(t *testing.T) {
	for field, want := range map[string]contract.Union{
		"": {UnknownStatus: contract.UnknownYields},
		"  clusterOperator: {degradedInertia: [2m, XDegraded=10m], unknownStatus: is-bad}\n": {
			Inertia:       contract.Inertia{All: 2 * time.Minute, Types: map[string]time.Duration{"XDegraded": 10 * time.Minute}},
			UnknownStatus: contract.UnknownIsBad,
		},
	} {
		p := parser(t)
		text := []byte("apiVersion: kmsharness.io/v1alpha1\nkind: Scenario\nmetadata: {name: kept, title: Kept., area: scale}\nspec:\n" + field + "  steps:\n  - wait: 1I\n")
		for range 2 {
			s, err := p.Parse("kept.yaml", text)
			if err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			if got := s.ClusterOperator.Union(); !reflect.DeepEqual(got, want) {
				t.Errorf("union %+v, expected %+v, in\n%s", got, want, text)
			}
			if text, err = s.Encode(); err != nil || strings.Contains(string(text), "clusterOperator") != (field != "") {
				t.Errorf("%v in\n%s", err, text)
			}
		}
	}
}
