package operand

import (
	"context"
	"fmt"
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

// revisions are those that there are, and which of them each node is to have.
type revisions interface {
	// look learns of revisions that others have made since.
	look(ctx context.Context, nodes map[string]Node) error
	// want notes that the operator wants a configuration, which was read of a Secret.
	want(ctx context.Context, s *corev1.Secret, c operator.Configuration) error
	newest() Revision
	// of is the revision that a node is to have.
	of(node string) Revision
	// wanted reports whether that has what the operator wants.
	wanted(node string) bool
	// forget is for a node that is gone.
	forget(node string)
}

// made makes a revision of each change of the Secret with the configuration that is wanted. All nodes are to have the newest.
type made struct {
	Options

	mu      sync.Mutex
	last    Revision
	desired map[string][]byte // data of the Secret of which it was made
}

func newMade(o Options) *made { return &made{Options: o, last: Revision{Number: firstRevision}} }

func (m *made) look(context.Context, map[string]Node) error { return nil }

func (m *made) want(ctx context.Context, s *corev1.Secret, c operator.Configuration) error {
	m.mu.Lock()
	next, same := m.last.Number+1, reflect.DeepEqual(m.desired, s.Data)
	m.mu.Unlock()
	if same {
		return nil
	}
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: operator.RevisionName(next)}, Data: s.Data}
	secrets := m.Client.CoreV1().Secrets(m.Namespace)
	_, err := secrets.Create(ctx, copied, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) { // the answer to a request before was lost
		_, err = secrets.Update(ctx, copied, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return fmt.Errorf("make revision %d: %w", next, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last, m.desired = Revision{next, c}, s.Data
	m.Log.Info("a new revision", "revision", next, "plugins", c.KeyIDs())
	return nil
}

func (m *made) newest() Revision {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

func (m *made) of(string) Revision { return m.newest() }
func (m *made) wanted(string) bool { return true }
func (m *made) forget(string)      {}

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
