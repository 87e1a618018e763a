package operator

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// writeKeyAnnotation of a StorageVersionMigration has the key that it is for.
const writeKeyAnnotation = "encryption.apiserver.operator.openshift.io/write-key"

// poll is how often the result of a migration or of a check is asked for.
const poll = 500 * time.Millisecond

// rewrite updates every encrypted object without a change, by one StorageVersionMigration for each resource. Those from before are deleted: another attempt
// proves nothing. key is the one that API servers write with.
func (o *Operator) rewrite(ctx context.Context, key uint64) error {
	var all []*unstructured.Unstructured
	for _, resource := range o.Encrypted {
		m, err := o.beginMigration(ctx, resource, key)
		if err != nil {
			return fmt.Errorf("migrate %s: %w", resource.GroupResource(), err)
		}
		all = append(all, m)
	}
	for _, m := range all {
		if err := wait.PollUntilContextCancel(ctx, poll, false, func(ctx context.Context) (bool, error) { return o.migrated(ctx, m) }); err != nil {
			return fmt.Errorf("migration %s: %w", m.GetName(), err)
		}
	}
	return nil
}

// beginMigration replaces the migration of a resource.
func (o *Operator) beginMigration(ctx context.Context, r schema.GroupVersionResource, key uint64) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	name := "encryption-migration-core-" + r.Resource
	if r.Group != "" {
		name = "encryption-migration-" + r.Group + "-" + r.Version + "-" + r.Resource
	}
	resource := map[string]any{"group": r.Group, "version": r.Version, "resource": r.Resource}
	if o.Migrations != Migrations() {
		delete(resource, "version") // Kubernetes takes the preferred one
	}
	m := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": o.Migrations.GroupVersion().String(), "kind": "StorageVersionMigration",
		"metadata": map[string]any{"name": name, "annotations": map[string]any{writeKeyAnnotation: strconv.FormatUint(key, 10)}},
		"spec":     map[string]any{"resource": resource},
	}}
	if err := o.dynamic.Resource(o.Migrations).Delete(ctx, m.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	return o.dynamic.Resource(o.Migrations).Create(ctx, m, metav1.CreateOptions{FieldManager: fieldManager})
}

// migrated reports whether a migration has succeeded. A request that fails is no result: an API server may be down.
func (o *Operator) migrated(ctx context.Context, begun *unstructured.Unstructured) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m, err := o.dynamic.Resource(o.Migrations).Get(ctx, begun.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && m.GetUID() != begun.GetUID() {
		return false, fmt.Errorf("it was deleted before it had a result")
	}
	if err != nil {
		return false, nil
	}
	conditions := ConditionsOf(m)
	if meta.IsStatusConditionTrue(conditions, MigrationFailed) {
		return false, fmt.Errorf("it failed: %s", meta.FindStatusCondition(conditions, MigrationFailed).Message)
	}
	return meta.IsStatusConditionTrue(conditions, MigrationSucceeded), nil
}

// ConditionsOf are the conditions of an object. Those that cannot be read are left out.
func ConditionsOf(u *unstructured.Unstructured) (all []metav1.Condition) {
	items, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, one := range items {
		var c metav1.Condition
		if fields, is := one.(map[string]any); is && runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &c) == nil {
			all = append(all, c)
		}
	}
	return all
}
