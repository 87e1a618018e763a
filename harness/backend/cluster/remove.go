package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"
)

// removed are the resources of a run's objects, in the order in which they are deleted: pods at once, so that nothing uses what goes after
// them; the namespace last, by which a run that was interrupted here can be found again.
func removed() []schema.GroupVersionResource {
	const admission, rbac, flows = "admissionregistration.k8s.io", "rbac.authorization.k8s.io", "flowcontrol.apiserver.k8s.io"
	return []schema.GroupVersionResource{
		{Version: "v1", Resource: "pods"},
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		{Group: admission, Version: "v1", Resource: "validatingadmissionpolicybindings"},
		{Group: admission, Version: "v1", Resource: "validatingadmissionpolicies"},
		{Group: flows, Version: "v1", Resource: "flowschemas"},
		{Group: flows, Version: "v1", Resource: "prioritylevelconfigurations"},
		{Group: rbac, Version: "v1", Resource: "clusterrolebindings"},
		{Group: rbac, Version: "v1", Resource: "clusterroles"},
		{Version: "v1", Resource: "namespaces"},
	}
}

// remove deletes all objects of a run, and returns when none is left.
func (a *access) remove(ctx context.Context, r run) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	client, err := dynamic.NewForConfig(a.config)
	if err != nil {
		return err
	}
	var errs []error
	for _, gvr := range removed() {
		errs = append(errs, deleteAll(ctx, client.Resource(gvr), r, gvr))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove run %s: %w: kmsharness down --run %s tries again", r.name, err, r.name)
	}
	err = until(ctx, "wait until all objects of run "+r.name+" are gone", func(ctx context.Context) error {
		left, err := TakeInventory(ctx, a.config, r.selector())
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("left: %s", strings.Join(slices.Sorted(maps.Keys(left)), ", "))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: kmsharness down --run %s tries again", err, r.name)
	}
	return nil
}

func deleteAll(ctx context.Context, client dynamic.NamespaceableResourceInterface, r run, gvr schema.GroupVersionResource) error {
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: r.selector()})
	if apierrors.IsNotFound(err) {
		return nil // an old cluster without that API
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", gvr.GroupResource(), err)
	}
	var errs []error
	for _, o := range list.Items {
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(o.GetUID())}}
		if gvr.Resource == "pods" {
			options.GracePeriodSeconds = ptr.To[int64](0)
		}
		if err := client.Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), options); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("delete %s %s: %w", gvr.GroupResource(), o.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

// Run is a run that has objects in a cluster.
type Run struct{ Name, Host, Created string }

// runs are those whose namespace is there.
func (a *access) runs(ctx context.Context) ([]Run, error) {
	var list corev1.NamespaceList
	if err := a.resources("").List(ctx, &list, resources.WithLabelSelector(labelRun)); err != nil {
		return nil, fmt.Errorf("list the runs in the cluster: %w", err)
	}
	var all []Run
	for _, n := range list.Items {
		all = append(all, Run{n.Labels[labelRun], n.Annotations[annotationHost], n.CreationTimestamp.UTC().Format("2006-01-02T15:04:05Z")})
	}
	return all, nil
}

// Runs are the runs that have objects in the cluster of a kubeconfig.
func Runs(ctx context.Context, kubeconfig string) ([]Run, error) {
	a, err := connect(kubeconfig)
	if err != nil {
		return nil, err
	}
	return a.runs(ctx)
}

// Remove removes all objects of a run from the cluster of a kubeconfig.
func Remove(ctx context.Context, kubeconfig, name string) error {
	a, err := connect(kubeconfig)
	if err != nil {
		return err
	}
	return a.remove(ctx, run{name})
}

// Watch notes the runs in a cluster, and gives what removes those of this machine that came since then and are still there: they were killed.
func Watch(ctx context.Context, p Placing) (sweep func(ctx context.Context, progress func(string)) error) {
	before, err := Runs(ctx, p.Kubeconfig)
	if err != nil { // the backend reports it
		return func(context.Context, func(string)) error { return nil }
	}
	return func(ctx context.Context, progress func(string)) error {
		after, err := Runs(ctx, p.Kubeconfig)
		if err != nil {
			return err
		}
		var errs []error
		for _, r := range left(before, after, host()) {
			progress("removing what run " + r + " left in the cluster")
			errs = append(errs, Remove(ctx, p.Kubeconfig, r))
		}
		return errors.Join(errs...)
	}
}

// left are the names of runs of a machine that came after before.
func left(before, after []Run, host string) (names []string) {
	for _, r := range after {
		if r.Host == host && !slices.ContainsFunc(before, func(b Run) bool { return b.Name == r.Name }) {
			names = append(names, r.Name)
		}
	}
	return names
}
