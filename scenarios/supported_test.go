package scenarios_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/scenarios"
)

// supported is how many scenarios each backend can run, at least: what it supports no more would be skipped, and its stage stay green.
var supported = map[string]int{"sim": 231, "local": 224, "kind": 202}

func TestBackendsSupportNoLess(t *testing.T) {
	all, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range choose.Names() {
		rootOnly := func(lack string) bool { return strings.HasSuffix(lack, "needs root") }
		b, err := choose.New(name, choose.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, got := supported[name], 0
		for _, s := range all {
			if len(slices.DeleteFunc(b.Unsupported(s), rootOnly)) == 0 {
				got++
			}
		}
		if got != want {
			t.Errorf("%s supports %d scenarios, recorded are %d: fewer is a loss, more belongs into the record", name, got, want)
		}
	}
}
