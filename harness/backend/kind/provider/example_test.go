package provider_test

import (
	"context"
	"fmt"
	"log"

	"sigs.k8s.io/e2e-framework/klient"

	"github.com/kmsharness/kmsharness/harness/backend/kind/provider"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// A test of another project runs on a kind cluster with three API servers, each with a KMS v2 plugin and a reporter in its pod. In a
// TestMain, envfuncs.CreateClusterWithOpts(cluster, "three", …) and envfuncs.DestroyCluster("three") do the same with
// e2e-framework's environment.
func Example() {
	ctx := context.Background()
	cluster, ok := provider.NewProvider().WithOpts(provider.ControlPlanes(3), provider.Health("1")).(*provider.Provider)
	if !ok {
		log.Fatal("not a provider of kind clusters")
	}
	kubeconfig, err := cluster.Create(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Destroy(ctx)

	client, err := klient.NewWithKubeConfigFile(kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	if err := cluster.WaitForControlPlane(ctx, client); err != nil {
		log.Fatal(err)
	}
	fmt.Println("at", cluster.KubernetesRestConfig().Host)

	// What becomes of my controller while a plugin hangs?
	hang := &scenario.Inject{Plugin: scenario.Selector{Node: "cp-2"}, Method: "Status", Fault: "hang"}
	if err := cluster.Environment().Do(ctx, hang); err != nil {
		log.Fatal(err)
	}
}
