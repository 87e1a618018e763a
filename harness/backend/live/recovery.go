package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/atrest"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/internal/poll"
)

// kept is a snapshot of the objects of scenarios: what etcd had, and which objects those were, with the provider that each lay under.
type kept struct {
	restore []func(context.Context) error
	written map[string]history.Data
}

// recovery is what is done to objects behind the API servers, or when these cannot read them.
type recovery struct {
	*dataset
	kept *kept // guarded by mu
}

// snapshot keeps the namespace of the objects as etcd has it. The rest of etcd stays as it is when that is restored: nodes keep their configuration files as well.
func (r *recovery) snapshot(ctx context.Context) error {
	r.mu.Lock()
	k := &kept{written: maps.Clone(r.written)}
	r.mu.Unlock()
	for _, of := range r.kinds() {
		from := of.Registry + cluster.DataNamespace + "/"
		restore, err := r.e.controlPlane.Storage.Snapshot(ctx, from, atrest.PrefixEnd(from))
		if err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		k.restore = append(k.restore, restore)
	}
	for name, d := range k.written {
		stored, err := atrest.Read(ctx, r.e.controlPlane.Storage, r.of(name).Registry+cluster.DataNamespace+"/"+name)
		if err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		d.Provider = stored.Provider
		k.written[name] = d
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = k
	return nil
}

// restore puts the objects back as they were at the snapshot, behind the API servers, as a restored etcd does. Each object is announced before that: what was
// written since is gone, and no loss.
func (r *recovery) restore(ctx context.Context) error {
	r.mu.Lock()
	k := r.kept
	r.mu.Unlock()
	if k == nil {
		return errors.New("restore: there is no snapshot")
	}
	r.mu.Lock()
	late := maps.Clone(r.written)
	r.written = maps.Clone(k.written)
	r.mu.Unlock()
	// first: an inventory of the time in between must not find what nobody has announced
	for _, name := range slices.Sorted(maps.Keys(k.written)) {
		delete(late, name)
		d := k.written[name]
		r.recordData(history.Data{Op: history.DataRestored, Object: d.Object, Digest: d.Digest, Provider: d.Provider}, nil)
	}
	for _, name := range slices.Sorted(maps.Keys(late)) {
		r.recordData(history.Data{Op: history.DataRestored, Object: late[name].Object}, nil)
	}
	for _, restore := range k.restore {
		if err := restore(ctx); err != nil {
			return fmt.Errorf("restore a snapshot: %w", err)
		}
	}
	return nil
}

// unreadable finds so many objects that cannot be read, through every API server that runs: the error of a list names them, and of the namespace no others
// (KEP-3926).
func (r *recovery) unreadable(ctx context.Context, count int) (names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for _, n := range r.e.serving() {
		var seen error
		err := poll.Until(ctx, readAgain, func() (bool, error) {
			found, err := r.unreadableOf(ctx, n, count)
			if names = found; seen == nil || ctx.Err() == nil { // at the end a request was given up, which says nothing
				seen = err
			}
			return err == nil, nil
		})
		if err != nil {
			return nil, fmt.Errorf("unreadable objects: %w", errors.Join(seen, err))
		}
	}
	return names, nil
}

func (r *recovery) unreadableOf(ctx context.Context, n *cluster.Node, count int) ([]string, error) {
	var named []string
	for _, of := range r.kinds() {
		keys, err := unreadableIn(ctx, n, of)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			if name, ours := strings.CutPrefix(key, cluster.DataNamespace+"/"); ours {
				named = append(named, name)
			}
		}
	}
	slices.Sort(named)
	names, err := r.unread(ctx, n)
	if err == nil && (len(names) != count || !slices.Equal(names, named)) {
		err = fmt.Errorf("%s cannot read %d objects (%s), and its list names %d (%s): expected %d", n.Name, len(names), strings.Join(names, ", "), len(named), strings.Join(named, ", "), count)
	}
	return names, err
}

// unreadableIn are the objects that the error of a list through an API server names, as NAMESPACE/NAME. A list without a limit is refused while the watch cache
// cannot be filled because of them.
func unreadableIn(ctx context.Context, n *cluster.Node, of cluster.Encrypted) (keys []string, err error) {
	_, err = n.DirectClient().Resource(of.Resource).List(ctx, metav1.ListOptions{Limit: listLimit})
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil, nil
	case !apierrors.IsStoreReadError(err) || !errors.As(err, &status) || status.Status().Details == nil:
		return nil, fmt.Errorf("list the %s of %s: expected the reason StoreReadError: %w", of.Name(), n.Name, err)
	}
	for _, cause := range status.Status().Details.Causes {
		key, known := strings.CutPrefix(cause.Field, of.Registry)
		if !known {
			return nil, fmt.Errorf("list the %s of %s: it names the key %q", of.Name(), n.Name, cause.Field)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// listLimit is more than there are objects.
const listLimit = 10_000

// unread are the objects that an API server cannot read one by one.
func (r *recovery) unread(ctx context.Context, n *cluster.Node) (names []string, err error) {
	r.mu.Lock()
	all := slices.Sorted(maps.Keys(r.written))
	r.mu.Unlock()
	for _, name := range all {
		_, err := n.DirectClient().Resource(r.of(name).Resource).Namespace(cluster.DataNamespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
		case apierrors.IsInternalError(err):
			names = append(names, name)
		default:
			return nil, err
		}
	}
	return names, nil
}

// verbUnsafeDelete is what a user needs besides delete, for the option of KEP-3926.
const verbUnsafeDelete = "unsafe-delete-ignore-read-errors"

// discard deletes so many objects that cannot be read. It tries before that what an API server must refuse: without the option, without the verb, and of
// an object that can be read.
func (r *recovery) discard(ctx context.Context, count int) error {
	names, err := r.unreadable(ctx, count)
	if err != nil {
		return err
	}
	n := r.e.serving()[0]
	deleter, err := r.clientWith(ctx, n, "kmsharness-deleter", "delete")
	if err != nil {
		return err
	}
	defer deleter.Close()
	discarder, err := r.clientWith(ctx, n, "kmsharness-discarder", "delete", verbUnsafeDelete)
	if err != nil {
		return err
	}
	defer discarder.Close()
	tries := []struct {
		by       *cluster.Client
		name     string
		unsafe   bool
		expected func(error) bool
		what     string
	}{
		{deleter, names[0], false, apierrors.IsInternalError, "a deletion of an object that cannot be read"},
		{deleter, names[0], true, apierrors.IsForbidden, "the option for a user without the verb " + verbUnsafeDelete},
		{discarder, r.readable(names), true, apierrors.IsConflict, "the option for an object that can be read"},
	}
	for _, try := range tries {
		if try.name == "" {
			continue
		}
		if err := r.remove(ctx, try.by, try.name, try.unsafe, try.expected); err != nil {
			return fmt.Errorf("discard %s: %s: it was not refused as it should be: %w", try.name, try.what, err)
		}
	}
	gone := func(err error) bool { return err == nil }
	for _, of := range r.kinds() { // those of other namespaces are the harness's own
		keys, err := unreadableIn(ctx, n, of)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if namespace, name, _ := strings.Cut(key, "/"); namespace != cluster.DataNamespace {
				if err := remove(ctx, discarder, of, namespace, name, true, gone); err != nil {
					return fmt.Errorf("discard %s: %w", key, err)
				}
			}
		}
	}
	for _, name := range names {
		if err := r.remove(ctx, discarder, name, true, gone); err != nil {
			return fmt.Errorf("discard %s: %w", name, err)
		}
		r.mu.Lock()
		was := r.written[name]
		delete(r.written, name)
		r.mu.Unlock()
		r.recordData(history.Data{Op: history.DataRestored, Object: was.Object}, nil)
	}
	return nil
}

// readable is an object that is not among some; empty: there is none.
func (r *recovery) readable(not []string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(r.written)) {
		if !slices.Contains(not, name) {
			return name
		}
	}
	return ""
}

func (r *recovery) remove(ctx context.Context, by *cluster.Client, name string, unsafe bool, expected func(error) bool) error {
	return remove(ctx, by, r.of(name), cluster.DataNamespace, name, unsafe, expected)
}

// remove deletes an object. An API server learns of roles some time after they are made: what is not expected is tried again.
func remove(ctx context.Context, by *cluster.Client, of cluster.Encrypted, namespace, name string, unsafe bool, expected func(error) bool) (err error) {
	var o metav1.DeleteOptions
	if unsafe {
		o.IgnoreStoreReadErrorWithClusterBreakingPotential = &unsafe
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.RequestTimeout)
	defer cancel()
	ended := poll.Until(ctx, readAgain, func() (bool, error) {
		err = by.Resource(of.Resource).Namespace(namespace).Delete(ctx, name, o)
		return expected(err), nil
	})
	if ended != nil {
		return fmt.Errorf("the last answer: %w", errors.Join(err, ended))
	}
	return nil
}

// clientWith is a client of an API server for a user who may do some verbs with the objects, and nothing else.
func (r *recovery) clientWith(ctx context.Context, n *cluster.Node, name string, verbs ...string) (*cluster.Client, error) {
	const group = "rbac.authorization.k8s.io"
	var rules []any
	for _, of := range r.kinds() {
		rules = append(rules, cluster.Object{"apiGroups": []any{of.Resource.Group}, "resources": []any{of.Resource.Resource}, "verbs": anyOf(verbs)})
	}
	role := cluster.NewObject(group+"/v1", "ClusterRole", name, cluster.Object{"rules": rules})
	binding := cluster.NewObject(group+"/v1", "ClusterRoleBinding", name, cluster.Object{
		"roleRef":  cluster.Object{"apiGroup": group, "kind": "ClusterRole", "name": name},
		"subjects": []any{cluster.Object{"apiGroup": group, "kind": "User", "name": name}},
	})
	for _, o := range []*unstructured.Unstructured{role, binding} {
		if err := n.Admin.Ensure(ctx, schema.GroupVersionResource{Group: group, Version: "v1", Resource: strings.ToLower(o.GetKind()) + "s"}, o); err != nil {
			return nil, err
		}
	}
	config, err := r.e.controlPlane.Credentials.RESTConfig(name, nil, n.URL)
	if err != nil {
		return nil, err
	}
	return cluster.NewClient(config)
}

func anyOf(texts []string) (all []any) {
	for _, t := range texts {
		all = append(all, t)
	}
	return all
}
