package kind

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// repair is what brings the nodes of a plane back that scenarios expect: one joins in a fraction of the time that a new
// cluster takes.
type repair struct{ out, in []string }

// planRepair compares the nodes that are there with the first of the naming scheme. A node that was isolated is a stranger,
// whatever its name.
func planRepair(size int, there []string, leaves func(string) bool) (repair, error) {
	var wanted, good []string
	for i := range size {
		wanted = append(wanted, nodeName(i+1))
	}
	var r repair
	for _, name := range there {
		if leaves(name) || !slices.Contains(wanted, name) {
			r.out = append(r.out, name)
			continue
		}
		good = append(good, name)
	}
	for _, name := range wanted {
		if !slices.Contains(good, name) {
			r.in = append(r.in, name)
		}
	}
	if len(good) == 0 {
		return repair{}, errors.New("none of the nodes is left that the cluster was made with")
	}
	return r, nil
}

// takeOut removes nodes.
func (p *plane) takeOut(ctx context.Context, names []string) error {
	for _, name := range names {
		n := p.nodes.Get(name)
		if !p.leaves(name) {
			if err := p.Isolate(ctx, n); err != nil {
				return err
			}
		}
		if err := p.deleteNode(ctx, name); err != nil {
			return err
		}
		if err := p.RemoveNode(ctx, n); err != nil {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return nil
}

// deleteNode deletes a Node object, which may be gone.
func (p *plane) deleteNode(ctx context.Context, name string) error {
	through, err := p.donor(name)
	if err != nil {
		return err
	}
	err = through.Admin.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete node %s: %w", name, err)
	}
	return nil
}

// bringIn adds nodes, one after another: etcd takes one new member at a time.
func (p *plane) bringIn(ctx context.Context, names, keyIDs []string) error {
	for _, name := range names {
		if _, err := p.AddNode(ctx, name, live.Plugins(keyIDs...), func(context.Context) error { return nil }); err != nil {
			return fmt.Errorf("bring %s back: %w", name, err)
		}
	}
	return nil
}
