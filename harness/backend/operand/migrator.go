package operand

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/staticpods"
)

// migrator does what kube-storage-version-migrator does: it carries out StorageVersionMigrations, one at a time.
type migrator struct{ Options }

// step carries out the first migration that has no result.
func (m *migrator) step(ctx context.Context) error {
	listing, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := m.Dynamic.Resource(staticpods.Migrations()).List(listing, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the migrations: %w", err)
	}
	for n := range list.Items {
		u := &list.Items[n]
		if has(u, staticpods.MigrationSucceeded) || has(u, staticpods.MigrationFailed) {
			continue
		}
		if err := m.carryOut(ctx, u); err != nil {
			return fmt.Errorf("migration %s: %w", u.GetName(), err)
		}
		return nil
	}
	return nil
}

// carryOut migrates a resource. A resource that cannot be migrated, because its version is not served for example, is a failed migration.
func (m *migrator) carryOut(ctx context.Context, u *unstructured.Unstructured) error {
	of := func(field string) string {
		text, _, _ := unstructured.NestedString(u.Object, "spec", "resource", field)
		return text
	}
	resource := schema.GroupVersionResource{Group: of("group"), Version: of("version"), Resource: of("resource")}
	if err := m.result(ctx, u, staticpods.MigrationRunning, ""); err != nil {
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
		return m.result(ctx, u, staticpods.MigrationFailed, err.Error())
	}
	return m.result(ctx, u, staticpods.MigrationSucceeded, "")
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
		now, err := m.Dynamic.Resource(staticpods.Migrations()).Get(ctx, u.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && now.GetUID() != u.GetUID() {
			gone()
			return
		}
	}
}

// has reports whether a condition is True.
func has(u *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == kind {
			return c["status"] == "True"
		}
	}
	return false
}

// result sets the one condition of a migration that is True. A migration that is gone, or another one by now, needs none.
func (m *migrator) result(ctx context.Context, u *unstructured.Unstructured, kind, message string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	now, err := m.Dynamic.Resource(staticpods.Migrations()).Get(ctx, u.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && now.GetUID() != u.GetUID() {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read it: %w", err)
	}
	var all []any
	for _, one := range []string{staticpods.MigrationRunning, staticpods.MigrationSucceeded, staticpods.MigrationFailed} {
		c := map[string]any{"type": one, "status": "False", "lastUpdateTime": m.Clock.Now().UTC().Format(time.RFC3339)}
		if one == kind {
			c["status"], c["message"] = "True", contract.SafeText(message, contract.MaxDetailChars)
		}
		all = append(all, c)
	}
	if err := unstructured.SetNestedSlice(now.Object, all, "status", "conditions"); err != nil {
		return fmt.Errorf("set its conditions: %w", err)
	}
	if _, err := m.Dynamic.Resource(staticpods.Migrations()).UpdateStatus(ctx, now, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
		return fmt.Errorf("write its status: %w", err)
	}
	return nil
}
