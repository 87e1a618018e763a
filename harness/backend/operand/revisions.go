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
	"github.com/kmsharness/kmsharness/operator/encryption"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// firstRevision is that of the pods that an operator finds. It has no encryption configuration.
const firstRevision = 1

// revisions are those that there are, and which of them each node is to have. Each change of what the operator wants is one, and all nodes are to have the
// newest. A whole operator makes revisions itself and assigns them to nodes by its installer pods.
type revisions struct {
	Options
	kubelet *kubelet // of a whole operator; nil: it is none

	mu       sync.Mutex
	last     Revision
	assigned map[string]Revision    // by node, of a whole operator
	asked    operator.Configuration // what a whole operator wants
	desired  map[string][]byte      // data of the Secret of which the last one was made
}

func newRevisions(o Options) *revisions {
	r := &revisions{Options: o, last: Revision{Number: firstRevision}, assigned: map[string]Revision{}}
	if o.Whole {
		r.kubelet = &kubelet{o, map[string]corev1.ConditionStatus{}}
	}
	return r
}

// look notes what installer pods have installed. A revision whose Secret is not there has no encryption configuration.
func (r *revisions) look(ctx context.Context, nodes map[string]Node) error {
	if r.kubelet == nil {
		return nil
	}
	assigned, err := r.kubelet.step(ctx, nodes)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, node := range slices.Sorted(maps.Keys(assigned)) {
		if assigned[node] <= r.of(node).Number {
			continue
		}
		var c operator.Configuration
		s, err := r.Client.CoreV1().Secrets(r.Namespace).Get(ctx, operator.RevisionName(assigned[node]), metav1.GetOptions{})
		if err == nil {
			c, _, err = readRevision(s)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read revision %d: %w", assigned[node], err)
		}
		r.assign(node, Revision{assigned[node], c})
		r.Log.Info("an installer pod has ended", "node", node, "revision", assigned[node], "plugins", c.KeyIDs())
	}
	return nil
}

func (r *revisions) assign(node string, rev Revision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.assigned[node] = rev
	if rev.Number >= r.last.Number {
		r.last = rev
	}
}

// want notes that the operator wants a configuration, which was read of a Secret.
func (r *revisions) want(ctx context.Context, s *corev1.Secret, c operator.Configuration) error {
	r.mu.Lock()
	r.asked = c
	next, same := r.last.Number+1, reflect.DeepEqual(r.desired, s.Data)
	r.mu.Unlock()
	if r.kubelet != nil || same {
		return nil
	}
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: operator.RevisionName(next)}, Data: s.Data}
	secrets := r.Client.CoreV1().Secrets(r.Namespace)
	_, err := secrets.Create(ctx, copied, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) { // the answer to a request before was lost
		_, err = secrets.Update(ctx, copied, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return fmt.Errorf("make revision %d: %w", next, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.desired = Revision{next, c}, s.Data
	r.Log.Info("a new revision", "revision", next, "plugins", c.KeyIDs())
	return nil
}

func (r *revisions) newest() Revision {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// of is the revision that a node is to have.
func (r *revisions) of(node string) Revision {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kubelet == nil {
		return r.last
	}
	if rev, there := r.assigned[node]; there {
		return rev
	}
	return Revision{Number: firstRevision}
}

// wanted reports whether the revision of a node has what the operator wants: one that has it may not be there yet.
func (r *revisions) wanted(node string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kubelet == nil || reflect.DeepEqual(r.assigned[node].Configuration, r.asked)
}

// forget is for a node that is gone.
func (r *revisions) forget(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.assigned, node)
}

// readRevision reads the Secret of a configuration. The plugins of the keys in its file come first, the one that writes before the others: that is the order in
// which a reporter has them.
func readRevision(s *corev1.Secret) (c operator.Configuration, read RollOut, err error) {
	if c, err = operator.ReadConfiguration(s); err != nil {
		return c, read, err
	}
	if read, err = ReadRollOut(c.File); err != nil {
		return c, read, fmt.Errorf("secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	rank := func(p revision.Plugin) int {
		at := slices.IndexFunc(read.Providers, func(e encryption.Provider) bool {
			return e.Type == encryption.KMS && e.KeyID == revision.SocketName(p.KeyID)
		})
		if at < 0 {
			return len(read.Providers)
		}
		return at
	}
	slices.SortStableFunc(c.Plugins, func(a, b revision.Plugin) int { return rank(a) - rank(b) })
	return c, read, nil
}
