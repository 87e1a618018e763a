package staticpods

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kmsharness/kmsharness/operator/exchange"
)

// writeKeyAnnotation of a StorageVersionMigration has the key that it is for.
const writeKeyAnnotation = "encryption.apiserver.operator.openshift.io/write-key"

// poll is how often the result of a migration or of a check is asked for.
const poll = 500 * time.Millisecond

// Rewrite implements operator.Executor, by one StorageVersionMigration for each resource. Those from before are deleted: another attempt proves nothing.
func (e *Executor) Rewrite(ctx context.Context, key uint64) error {
	var all []*unstructured.Unstructured
	for _, resource := range e.Encrypted {
		m, err := e.begin(ctx, resource, key)
		if err != nil {
			return fmt.Errorf("migrate %s: %w", resource, err)
		}
		all = append(all, m)
	}
	for _, m := range all {
		if err := wait.PollUntilContextCancel(ctx, poll, false, func(ctx context.Context) (bool, error) { return e.migrated(ctx, m) }); err != nil {
			return fmt.Errorf("migration %s: %w", m.GetName(), err)
		}
	}
	return nil
}

// begin replaces the migration of a resource of the core group.
func (e *Executor) begin(ctx context.Context, resource string, key uint64) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, exchange.RequestTimeout)
	defer cancel()
	m := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Migrations().GroupVersion().String(), "kind": "StorageVersionMigration",
		"metadata": map[string]any{"name": "encryption-migration-core-" + resource, "annotations": map[string]any{writeKeyAnnotation: strconv.FormatUint(key, 10)}},
		"spec":     map[string]any{"resource": map[string]any{"group": "", "version": "v1", "resource": resource}},
	}}
	if err := e.Dynamic.Resource(Migrations()).Delete(ctx, m.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	return e.Dynamic.Resource(Migrations()).Create(ctx, m, metav1.CreateOptions{FieldManager: exchange.FieldManager})
}

// migrated reports whether a migration has succeeded. A request that fails is no result: an API server may be down.
func (e *Executor) migrated(ctx context.Context, begun *unstructured.Unstructured) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, exchange.RequestTimeout)
	defer cancel()
	m, err := e.Dynamic.Resource(Migrations()).Get(ctx, begun.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && m.GetUID() != begun.GetUID() {
		return false, fmt.Errorf("it was deleted before it had a result")
	}
	if err != nil {
		return false, nil
	}
	conditions, _, _ := unstructured.NestedSlice(m.Object, "status", "conditions")
	for _, one := range conditions {
		c, _ := one.(map[string]any)
		switch {
		case c["status"] != string(metav1.ConditionTrue):
		case c["type"] == MigrationSucceeded:
			return true, nil
		case c["type"] == MigrationFailed:
			return false, fmt.Errorf("it failed: %v", c["message"])
		}
	}
	return false, nil
}
