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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/kmsharness/kmsharness/operator/revision"
)

// poll is how often the result of a migration or of a check is asked for.
const poll = 500 * time.Millisecond

// migrator makes StorageVersionMigrations of one kind. Another program carries them out.
type migrator struct {
	migrations dynamic.NamespaceableResourceInterface
	kind       schema.GroupVersionResource
}

// rewrite updates all objects of some resources without a change, by one StorageVersionMigration for each. Those from before are deleted: another
// attempt proves nothing. key is the one that API servers write with.
func (m migrator) rewrite(ctx context.Context, resources []schema.GroupVersionResource, key uint64) error {
	var all []*unstructured.Unstructured
	for _, resource := range resources {
		begun, err := m.begin(ctx, resource, key)
		if err != nil {
			return fmt.Errorf("migrate %s: %w", resource.GroupResource(), err)
		}
		all = append(all, begun)
	}
	for _, begun := range all {
		if err := wait.PollUntilContextCancel(ctx, poll, false, func(ctx context.Context) (bool, error) { return m.done(ctx, begun) }); err != nil {
			return fmt.Errorf("migration %s: %w", begun.GetName(), err)
		}
	}
	return nil
}

// begin replaces the migration of a resource.
func (m migrator) begin(ctx context.Context, r schema.GroupVersionResource, key uint64) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	name := "encryption-migration-core-" + r.Resource
	if r.Group != "" {
		name = "encryption-migration-" + r.Group + "-" + r.Version + "-" + r.Resource
	}
	resource := map[string]any{"group": r.Group, "version": r.Version, "resource": r.Resource}
	if m.kind != revision.Migrations() {
		delete(resource, "version") // Kubernetes takes the preferred one
	}
	wanted := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": m.kind.GroupVersion().String(), "kind": "StorageVersionMigration",
		"metadata": map[string]any{"name": name, "annotations": map[string]any{revision.WriteKeyAnnotation: strconv.FormatUint(key, 10)}},
		"spec":     map[string]any{"resource": resource},
	}}
	if err := m.migrations.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	return m.migrations.Create(ctx, wanted, metav1.CreateOptions{FieldManager: fieldManager})
}

// done reports whether a migration has succeeded. A request that fails is no result: an API server may be down.
func (m migrator) done(ctx context.Context, begun *unstructured.Unstructured) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	now, err := m.migrations.Get(ctx, begun.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && now.GetUID() != begun.GetUID() {
		return false, fmt.Errorf("it was deleted before it had a result")
	}
	if err != nil {
		return false, nil
	}
	conditions := revision.ConditionsOf(now)
	if meta.IsStatusConditionTrue(conditions, revision.MigrationFailed) {
		return false, fmt.Errorf("it failed: %s", meta.FindStatusCondition(conditions, revision.MigrationFailed).Message)
	}
	return meta.IsStatusConditionTrue(conditions, revision.MigrationSucceeded), nil
}
