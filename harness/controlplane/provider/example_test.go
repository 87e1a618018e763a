package provider_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/kmsharness/kmsharness/harness/controlplane/provider"
)

// A test of another project runs on two real API servers. In a TestMain, envfuncs.CreateClusterWithOpts(provider.NewProvider(),
// "two", provider.ControlPlanes(2)) and envfuncs.DestroyCluster("two") do the same with e2e-framework's environment.
func Example() {
	ctx := context.Background()
	cluster := provider.NewProvider().WithName("two").WithOpts(provider.ControlPlanes(2))
	kubeconfig, err := cluster.Create(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Destroy(ctx)

	client, err := klient.NewWithKubeConfigFile(kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	var namespaces corev1.NamespaceList
	if err := client.Resources().List(ctx, &namespaces); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(namespaces.Items), "namespaces")

	// What happens to a client while one API server is down?
	if nodes, ok := cluster.(support.E2EClusterProviderWithLifeCycle); ok {
		if err := nodes.StopNode(ctx, &support.Node{Name: "cp-1"}); err != nil {
			log.Fatal(err)
		}
	}
}
