package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Inventory is every object of a cluster, as "RESOURCE.GROUP NAMESPACE/NAME", with its resource version.
type Inventory map[string]string

// TakeInventory lists all objects of all resources that can be listed; selector selects some of them by their labels.
func TakeInventory(ctx context.Context, config *rest.Config, selector string) (Inventory, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // deprecated resources are listed as well
	resources, err := listable(config)
	if err != nil {
		return nil, fmt.Errorf("resources of the cluster: %w", err)
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	all := Inventory{}
	for _, r := range resources {
		list, err := client.Resource(r).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			continue // its CRD has just gone, or it is served in another form only
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", r.GroupResource(), err)
		}
		for _, o := range list.Items {
			all[r.GroupResource().String()+" "+strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")] = o.ResourceVersion
		}
	}
	return all, nil
}

// listable are the resources in their preferred versions. Groups whose server does not answer are left out: nothing of a run is in them.
func listable(config *rest.Config) (all []schema.GroupVersionResource, err error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := client.ServerPreferredResources()
	var failed *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &failed) {
		return nil, err
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") {
				all = append(all, gv.WithResource(r.Name))
			}
		}
	}
	return all, nil
}

// Changes are the differences between two inventories, sorted.
type Changes struct{ Added, Removed, Changed []string }

// None reports whether there are no differences.
func (c Changes) None() bool { return len(c.Added)+len(c.Removed)+len(c.Changed) == 0 }

func (c Changes) String() string {
	var lines []string
	for _, part := range []struct {
		what  string
		names []string
	}{{"added", c.Added}, {"removed", c.Removed}, {"changed", c.Changed}} {
		for _, name := range part.names {
			lines = append(lines, part.what+" "+name)
		}
	}
	return strings.Join(lines, "\n")
}

// restless are resources that a cluster changes all the time by itself: heartbeats and what happened. Events and metrics also come and go.
var restless = []string{"leases.coordination.k8s.io", "nodes", "events", "events.events.k8s.io"}

// Compare returns what changed from one inventory to a later one, without what a cluster changes by itself. Names of leases and nodes
// still count.
func Compare(before, after Inventory) (c Changes) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		resource, _, _ := strings.Cut(name, " ")
		volatile := slices.Contains(restless, resource)
		version, known := before[name]
		switch {
		case !known && !isEvent(resource):
			c.Added = append(c.Added, name)
		case known && version != after[name] && !volatile:
			c.Changed = append(c.Changed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		resource, _, _ := strings.Cut(name, " ")
		if _, there := after[name]; !there && !isEvent(resource) {
			c.Removed = append(c.Removed, name)
		}
	}
	return c
}

func isEvent(resource string) bool { return strings.HasPrefix(resource, "events") }
