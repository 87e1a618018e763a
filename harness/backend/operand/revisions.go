package operand

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/staticpods"
)

// firstRevision is that of the pods that an operator finds. It has no encryption configuration.
const firstRevision = 1

// numbered is a revision. Configuration is zero if it has no encryption configuration.
type numbered struct {
	number int
	staticpods.Configuration
}

// revisions are those that there are, and which of them each node is to have.
type revisions interface {
	// look learns of revisions that others have made since.
	look(ctx context.Context, nodes map[string]core.Node) error
	// want notes that the operator wants a configuration, which was read of a Secret.
	want(ctx context.Context, s *corev1.Secret, c staticpods.Configuration) error
	newest() numbered
	// of is the revision that a node is to have.
	of(node string) numbered
	// wanted reports whether that has what the operator wants.
	wanted(node string) bool
	// forget is for a node that is gone.
	forget(node string)
}

// made makes a revision of each change of the Secret staticpods.DesiredName. All nodes are to have the newest.
type made struct {
	Options

	mu      sync.Mutex
	last    numbered
	desired map[string][]byte // data of the Secret of which it was made
}

func newMade(o Options) *made { return &made{Options: o, last: numbered{number: firstRevision}} }

func (m *made) look(context.Context, map[string]core.Node) error { return nil }

func (m *made) want(ctx context.Context, s *corev1.Secret, c staticpods.Configuration) error {
	m.mu.Lock()
	next, same := m.last.number+1, reflect.DeepEqual(m.desired, s.Data)
	m.mu.Unlock()
	if same {
		return nil
	}
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: staticpods.ConfigName(next)}, Data: s.Data}
	_, err := m.Client.CoreV1().Secrets(Namespace).Create(ctx, copied, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) { // the answer to a request before was lost
		_, err = m.Client.CoreV1().Secrets(Namespace).Update(ctx, copied, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return fmt.Errorf("make revision %d: %w", next, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last, m.desired = numbered{next, c}, s.Data
	m.Log.Info("a new revision", "revision", next, "plugins", c.KeyIDs())
	return nil
}

func (m *made) newest() numbered {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

func (m *made) of(string) numbered { return m.newest() }
func (m *made) wanted(string) bool { return true }
func (m *made) forget(string)      {}
