package kind

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/controlplane"
)

// deploy makes the pods and waits until every container of them waits for its command. Kubeadm's API servers run, and will be away soon:
// the pods need them for nothing until they have a command.
func (f *fleet) deploy(ctx context.Context, server string) error {
	objects := objectsOf(f.Stand)
	for _, n := range f.nodes.List() {
		objects = append(objects, deploymentOf(f.Stand, f.archives.images, n.Name, f.ports))
	}
	var all []*unstructured.Unstructured
	for _, o := range objects {
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Stand.APIServer, err)
		}
		delete(u, "status")
		all = append(all, &unstructured.Unstructured{Object: u})
	}
	if err := f.applyThrough(ctx, server, all...); err != nil {
		return err
	}
	nodes := f.nodes.List()
	return eachOf(ctx, f.nodes.Names(), func(ctx context.Context, i int) error { return f.awaitHolds(ctx, nodes[i]) })
}

// apply applies objects through an API server that runs.
func (f *fleet) apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	through, err := f.donor("")
	if err != nil {
		return err
	}
	return f.applyThrough(ctx, through.Server.URL(), objects...)
}

func (f *fleet) applyThrough(ctx context.Context, server string, objects ...*unstructured.Unstructured) error {
	config, err := f.authority.AdminConfig(server)
	if err != nil {
		return err
	}
	if err := controlplane.Install(ctx, []*rest.Config{config}, objects...); err != nil {
		return fmt.Errorf("%s: %w", f.Stand.APIServer, err)
	}
	return nil
}

// awaitHolds returns when the hold of every container of a node's pod answers.
func (f *fleet) awaitHolds(ctx context.Context, n *live.Node) error {
	dir := f.layout.node(n.Name).pod(f.Stand.APIServer).dir
	for _, name := range append(slotUnits(), unitAPIServer, unitReporter) {
		u, err := newHeld(dir, name)
		if err != nil {
			return err
		}
		if err := until(ctx, readyPoll, "wait for the container "+name+" of "+deploymentName(f.Stand, n.Name), u.there); err != nil {
			return err
		}
	}
	return nil
}

// there asks whether the hold of a unit answers.
func (u *held) there(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	_, err := u.client.State(ctx)
	return err
}

// scale asks for the pod of a node, or for none.
func (f *fleet) scale(ctx context.Context, node string, replicas int) error {
	through, err := f.donor("")
	if err != nil {
		return err
	}
	client, err := f.typed(through.Server.URL())
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	name := deploymentName(f.Stand, node)
	if _, err := client.AppsV1().Deployments(f.Namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("scale the deployment %s to %d: %w", name, replicas, err)
	}
	if replicas > 0 {
		return nil
	}
	return until(ctx, readyPoll, "wait until the pod of "+name+" is gone", func(ctx context.Context) error {
		pods, err := client.CoreV1().Pods(f.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labelAPIServer + "=" + f.Stand.APIServer + "," + labelNode + "=" + node})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("it is %s", pods.Items[0].Status.Phase)
		}
		return err
	})
}
