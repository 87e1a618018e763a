package operand

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// migrator does what kube-storage-version-migrator, or Kubernetes' own controller, does: it carries out StorageVersionMigrations, one at a time.
type migrator struct {
	Options
	sources *sources
}

// step carries out the first migration that has no result.
func (m *migrator) step(ctx context.Context) error {
	all := items[*unstructured.Unstructured](m.sources.migrations)
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	for _, u := range all {
		if ended(u) || !m.Pods.Migrates(resourceOf(u)) {
			continue
		}
		if now, err := m.now(ctx, u); err != nil || now == nil || ended(now) {
			return err // the cache is behind
		}
		if err := m.carryOut(ctx, u); err != nil {
			return fmt.Errorf("migration %s: %w", u.GetName(), err)
		}
		return nil
	}
	return nil
}

// ended reports whether a migration has a result.
func ended(u *unstructured.Unstructured) bool {
	all := revision.ConditionsOf(u)
	return meta.IsStatusConditionTrue(all, revision.MigrationSucceeded) || meta.IsStatusConditionTrue(all, revision.MigrationFailed)
}

// now reads a migration; nil if it is gone, or another one.
func (m *migrator) now(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	now, err := m.Dynamic.Resource(m.Migrations).Get(ctx, u.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && now.GetUID() != u.GetUID() {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read migration %s: %w", u.GetName(), err)
	}
	return now, nil
}

// preferred is the version of all resources that kube-apiserver encrypts, which a migration of Kubernetes' does not name.
const preferred = "v1"

// resourceOf is the resource that a migration is of.
func resourceOf(u *unstructured.Unstructured) schema.GroupVersionResource {
	of := func(field string) string {
		text, _, _ := unstructured.NestedString(u.Object, "spec", "resource", field)
		return text
	}
	return schema.GroupVersionResource{Group: of("group"), Version: cmp.Or(of("version"), preferred), Resource: of("resource")}
}

// carryOut migrates a resource. A resource that cannot be migrated, because its version is not served for example, is a failed migration.
func (m *migrator) carryOut(ctx context.Context, u *unstructured.Unstructured) error {
	resource := resourceOf(u)
	if err := m.result(ctx, u, revision.MigrationRunning, ""); err != nil {
		return err
	}
	m.Log.Info("a migration begins", "name", u.GetName(), "resource", resource.String())
	migrating, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() { defer close(ended); m.watchGone(migrating, u, cancel) }()
	err := m.Pods.Migrate(migrating, resource)
	cancel()
	<-ended
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		m.Log.Warn("a migration failed", "name", u.GetName(), "error", err.Error())
		return m.result(ctx, u, revision.MigrationFailed, err.Error())
	}
	return m.result(ctx, u, revision.MigrationSucceeded, "")
}

// watchGone ends a migration whose object was deleted or replaced, as the operator does when it wants something else.
func (m *migrator) watchGone(ctx context.Context, u *unstructured.Unstructured, gone func()) {
	ticker := m.Clock.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		if now, err := m.now(ctx, u); err == nil && now == nil {
			gone()
			return
		}
	}
}

// result sets the one condition of a migration that is True. A migration that is gone, or another one by now, needs none.
func (m *migrator) result(ctx context.Context, u *unstructured.Unstructured, kind, message string) error {
	now, err := m.now(ctx, u)
	if err != nil || now == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var all []any
	for _, one := range []string{revision.MigrationRunning, revision.MigrationSucceeded, revision.MigrationFailed} {
		c := map[string]any{"type": one, "status": "False", "lastUpdateTime": m.Clock.Now().UTC().Format(time.RFC3339)}
		if one == kind {
			c["status"], c["message"] = "True", contract.SafeText(message, contract.MaxDetailChars)
		}
		if m.Migrations != revision.Migrations() { // whose conditions are those of all Kubernetes objects
			c["lastTransitionTime"], c["reason"] = c["lastUpdateTime"], "StorageVersionMigration"+one
			delete(c, "lastUpdateTime")
		}
		all = append(all, c)
	}
	if err := unstructured.SetNestedSlice(now.Object, all, "status", "conditions"); err != nil {
		return fmt.Errorf("set its conditions: %w", err)
	}
	if _, err := m.Dynamic.Resource(m.Migrations).UpdateStatus(ctx, now, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
		return fmt.Errorf("write its status: %w", err)
	}
	return nil
}
