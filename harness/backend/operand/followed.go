package operand

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/operator"
)

// followed are the revisions of a whole operator, which makes them itself and assigns them to nodes by its installer pods.
type followed struct {
	Options
	kubelet *kubelet

	mu       sync.Mutex
	last     Revision
	assigned map[string]Revision    // by node
	asked    operator.Configuration // what the operator wants
}

func newFollowed(o Options) *followed {
	return &followed{Options: o, kubelet: &kubelet{o, map[string]corev1.ConditionStatus{}}, last: Revision{Number: firstRevision}, assigned: map[string]Revision{}}
}

// look notes what the installer pods have installed. A revision whose Secret is not there has no encryption configuration.
func (f *followed) look(ctx context.Context, nodes map[string]Node) error {
	assigned, err := f.kubelet.step(ctx, nodes)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, node := range slices.Sorted(maps.Keys(assigned)) {
		if assigned[node] <= f.of(node).Number {
			continue
		}
		var c operator.Configuration
		s, err := f.Client.CoreV1().Secrets(f.Namespace).Get(ctx, operator.RevisionName(assigned[node]), metav1.GetOptions{})
		if err == nil {
			c, _, err = readRevision(s)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read revision %d: %w", assigned[node], err)
		}
		f.assign(node, Revision{assigned[node], c})
		f.Log.Info("an installer pod has ended", "node", node, "revision", assigned[node], "plugins", c.KeyIDs())
	}
	return nil
}

func (f *followed) assign(node string, rev Revision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.assigned[node] = rev
	if rev.Number >= f.last.Number {
		f.last = rev
	}
}

// want makes no revision: the operator does.
func (f *followed) want(_ context.Context, _ *corev1.Secret, c operator.Configuration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = c
	return nil
}

func (f *followed) newest() Revision {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

func (f *followed) of(node string) Revision {
	f.mu.Lock()
	defer f.mu.Unlock()
	if rev, there := f.assigned[node]; there {
		return rev
	}
	return Revision{Number: firstRevision}
}

// wanted: a revision with what is wanted may not be there yet.
func (f *followed) wanted(node string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return reflect.DeepEqual(f.assigned[node].Configuration, f.asked)
}

func (f *followed) forget(node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.assigned, node)
}
