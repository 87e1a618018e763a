// Package limits_test simulates the scenarios beside it: known limits of kube-apiserver (docs/kube-apiserver-limits.md). On a real one
// they take minutes of real time each, so they are no part of the catalogue.
package limits_test

import (
	"testing"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

func TestLimits(t *testing.T) {
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	all, err := parser.Load(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 4 {
		t.Fatalf("%d scenarios, expected those of docs/kube-apiserver-limits.md", len(all))
	}
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			b := virtual.New(virtual.Options{})
			defer b.Close(t.Context())
			r := engine.Execute(t.Context(), b, s, engine.Execution{Out: t.TempDir(), Options: engine.Options{
				Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: 1, Reproduce: "a test"}})
			if r.Status != result.Passed {
				t.Errorf("%s %v %+v", r.Status, r.Reasons, r.Failures)
			}
		})
	}
}
