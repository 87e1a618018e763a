package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// servePoll is small against the 100 to 200 ms that it takes until a new resource is served.
const servePoll = 20 * time.Millisecond

// waitServed returns when this API server lists every served version of the resources.
func (i *installation) waitServed(ctx context.Context, crds []*unstructured.Unstructured) error {
	for _, crd := range crds {
		resources, err := servedResources(crd)
		if err != nil {
			return describe(crd, err)
		}
		for _, r := range resources {
			if err := i.waitListed(ctx, r); err != nil {
				return fmt.Errorf("wait until %s is served: %w", r, err)
			}
		}
	}
	return nil
}

func (i *installation) waitListed(ctx context.Context, r schema.GroupVersionResource) error {
	ticker := time.NewTicker(servePoll)
	defer ticker.Stop()
	for {
		_, err := i.client.Resource(r).List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil || !(apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err)) {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// servedResources are the resources that a CustomResourceDefinition makes.
func servedResources(crd *unstructured.Unstructured) ([]schema.GroupVersionResource, error) {
	group, _, err := unstructured.NestedString(crd.Object, "spec", "group")
	if err != nil {
		return nil, err
	}
	plural, _, err := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	if err != nil {
		return nil, err
	}
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil {
		return nil, err
	}
	var all []schema.GroupVersionResource
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if !ok || version["served"] != true {
			continue
		}
		name, _ := version["name"].(string)
		all = append(all, schema.GroupVersionResource{Group: group, Version: name, Resource: plural})
	}
	return all, nil
}
