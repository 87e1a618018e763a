package cluster_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend/cluster"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// TestLeavesNothing runs a scenario on the cluster of a kubeconfig, and compares all objects before and after. Two inventories before the run
// show that the cluster is at rest.
func TestLeavesNothing(t *testing.T) {
	kubeconfig := os.Getenv("KMSHARNESS_CLUSTER")
	if kubeconfig == "" {
		t.Skip("needs an existing cluster: KMSHARNESS_CLUSTER=FILE names its kubeconfig (docs/contributing.md)")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	inventory := func() cluster.Inventory {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		all, err := cluster.TakeInventory(ctx, config, "")
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	first, before := inventory(), inventory()
	if c := cluster.Compare(first, before); !c.None() {
		t.Fatalf("the cluster is not at rest:\n%s", c)
	}
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	all, err := parser.Load(filepath.FromSlash("../../../scenarios/catalogue/plugin-hangs.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := cluster.New(cluster.Options{Placing: cluster.Placing{Kubeconfig: kubeconfig}})
	if err != nil {
		t.Fatal(err)
	}
	r := engine.Execute(t.Context(), b, all[0], engine.Execution{Out: t.TempDir(), Options: engine.Options{
		Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: 1, Progress: func(line string) { t.Log(line) }}})
	if err := b.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if r.Status != result.Passed {
		t.Errorf("%s: %s", all[0].Name, r.StatusText())
	}
	if c := cluster.Compare(before, inventory()); !c.None() {
		t.Errorf("the cluster is not as it was:\n%s", c)
	}
}
