package operand

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/internal/turn"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
	"github.com/kmsharness/kmsharness/operator/staticpods"
)

// Installer gives one node after another the revision that it is to have.
type Installer struct {
	Options
	mirrors   *mirrors
	revisions revisions

	turn      turn.Turn // of a step, or of a rollback
	mu        sync.Mutex
	installed map[string]int
	back      map[string]int // nodes that were rolled back, with the newest revision of that time: they stay until there is another
	said      claim          // of the round before
}

// claim is what an operator says of a key that everything lies under. The zero claim: there is no such key.
type claim struct {
	key uint64
	kek string
}

func newInstaller(o Options) *Installer {
	i := &Installer{Options: o, turn: turn.New(), mirrors: &mirrors{Options: o, pods: map[string]mirror{}}, revisions: newMade(o), installed: map[string]int{}, back: map[string]int{}}
	if o.Whole {
		i.revisions = newFollowed(o)
	}
	return i
}

// Current is the newest revision, with which a new pod begins. Configuration is zero if it has no encryption configuration.
func (i *Installer) Current() (int, staticpods.Configuration) {
	newest := i.revisions.newest()
	return newest.number, newest.Configuration
}

// Joined notes that a node's pod has begun with a revision.
func (i *Installer) Joined(node string, revision int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.installed[node] = revision
}

// Revisions reads the revisions that there are with an encryption configuration, by number.
func (i *Installer) Revisions(ctx context.Context) (map[int]staticpods.Configuration, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := i.Client.CoreV1().Secrets(Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the revisions: %w", err)
	}
	all := map[int]staticpods.Configuration{}
	for n := range list.Items {
		number, is := revisionNamed(list.Items[n].Name)
		if !is {
			continue
		}
		if all[number], err = staticpods.ReadConfiguration(&list.Items[n]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// RollBack has a node's pod replaced by one of a revision that is there. The node gets the newest again with the next revision that is made, or by a RollBack
// to the newest.
func (i *Installer) RollBack(ctx context.Context, node string, revision int, remake func() error) error {
	i.turn.Lock()
	defer i.turn.Unlock()
	all, err := i.Revisions(ctx)
	if err != nil {
		return err
	}
	if err := remake(); err != nil {
		return err
	}
	i.mirrors.replace(node, revision, all[revision])
	i.mu.Lock()
	defer i.mu.Unlock()
	i.installed[node], i.back[node] = revision, i.revisions.newest().number
	return nil
}

// step reads what is wanted, brings one node further towards it, and shows in the API what came of it.
func (i *Installer) step(ctx context.Context) error {
	i.turn.Lock()
	defer i.turn.Unlock()
	nodes, err := i.Pods.Nodes(ctx)
	if err != nil {
		return fmt.Errorf("inspect the nodes: %w", err)
	}
	if err := i.revisions.look(ctx, nodes); err != nil {
		return err
	}
	desired, err := i.read(ctx)
	if err != nil {
		return err
	}
	keys, err := i.readKeys(ctx)
	if err != nil {
		return err
	}
	return errors.Join(i.reportClaim(ctx, desired, keys), i.roll(ctx, nodes), i.show(ctx, desired, keys))
}

// read reads what is wanted, and notes it. It is nil before there is anything.
func (i *Installer) read(ctx context.Context) (*operated.RollOut, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	s, err := i.Client.CoreV1().Secrets(ManagedNamespace).Get(ctx, staticpods.DesiredName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the configuration that is wanted: %w", err)
	}
	c, err := staticpods.ReadConfiguration(s)
	if err != nil {
		return nil, err
	}
	read, err := operated.ReadRollOut(c.File)
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	return &read, i.revisions.want(ctx, s, c)
}

// roll brings the first node that does not have its revision further. The others wait for it.
func (i *Installer) roll(ctx context.Context, nodes map[string]core.Node) error {
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		rev := i.revisions.of(name)
		i.mu.Lock()
		has := i.installed[name]
		if has == 0 {
			has, i.installed[name] = firstRevision, firstRevision
		}
		back := i.back[name] == rev.number
		i.mu.Unlock()
		if has == rev.number || back {
			continue
		}
		if nodes[name].Unavailable {
			return fmt.Errorf("install revision %d on %s: the node is unavailable", rev.number, name)
		}
		i.mirrors.replace(name, rev.number, rev.Configuration)
		if len(rev.File) > 0 || i.Pods.Anew() { // otherwise nothing of it is in the pod
			if err := i.install(ctx, name, nodes[name], rev); err != nil {
				return fmt.Errorf("install revision %d on %s: %w", rev.number, name, err)
			}
		}
		i.Joined(name, rev.number)
		return nil
	}
	return nil
}

// install gives a node's pod what a revision has: its plugins before its API server, its API server before its reporter. What the pod loses goes in
// the opposite order. A pod that is replaced gets all of it together.
func (i *Installer) install(ctx context.Context, name string, n core.Node, rev numbered) error {
	if err := i.Pods.StartPlugins(ctx, name, rev.Plugins); err != nil {
		return err
	}
	loaded := n.Loaded == rev.number && n.Up
	if i.Pods.Anew() && !loaded {
		if err := i.sidecars(ctx, name, n, rev.Configuration); err != nil {
			return err
		}
	}
	if !loaded {
		if err := i.Pods.RollOut(ctx, name, rev.number, rev.File); err != nil {
			return err
		}
		return errNotLoaded
	}
	return i.sidecars(ctx, name, n, rev.Configuration)
}

// sidecars gives a node's reporter its sockets, and ends the plugins that a revision does not have.
func (i *Installer) sidecars(ctx context.Context, name string, n core.Node, c staticpods.Configuration) error {
	if !sameSet(n.Reporter, c.KeyIDs()) {
		if err := i.Pods.Report(ctx, name, c.KeyIDs()); err != nil {
			return err
		}
	}
	var ends []uint64
	for id := range n.Plugins {
		if !slices.Contains(c.KeyIDs(), id) {
			ends = append(ends, id)
		}
	}
	return i.Pods.StopPlugins(ctx, name, ends)
}

// errNotLoaded is the usual state of an installation.
var errNotLoaded = errors.New("the API server has not loaded it yet")

func sameSet(a, b []uint64) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// readKeys reads the operator's keys.
func (i *Installer) readKeys(ctx context.Context) (all []Key, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	keys, err := i.Client.CoreV1().Secrets(ManagedNamespace).List(ctx, metav1.ListOptions{LabelSelector: KeySelector})
	if err != nil {
		return nil, fmt.Errorf("list the keys: %w", err)
	}
	for n := range keys.Items {
		if !strings.HasPrefix(keys.Items[n].Name, keyPrefix) {
			continue
		}
		k, err := ReadKey(&keys.Items[n])
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

// reportClaim reports a claim that is news: before a revision is installed that lacks a key because of it. What a migrator did is no claim: an operator may
// know that it does not count.
func (i *Installer) reportClaim(ctx context.Context, desired *operated.RollOut, keys []Key) error {
	var said claim
	if newest := Newest(keys); newest.ID != 0 && desired != nil && newest.migrated(desired.Resources) {
		said = claim{newest.ID, newest.MigratedKEK}
	}
	if said != i.said && said.key != 0 {
		if err := i.Pods.Migrated(ctx); err != nil {
			return err
		}
	}
	i.said = said
	return nil
}

// show writes the pods and the operator's node statuses as they are now, and passes on what the objects say.
func (i *Installer) show(ctx context.Context, desired *operated.RollOut, keys []Key) error {
	nodes, err := i.Pods.Nodes(ctx)
	if err != nil {
		return fmt.Errorf("inspect the nodes: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	i.mu.Lock()
	for name := range i.installed {
		if _, there := nodes[name]; !there {
			delete(i.installed, name)
			delete(i.back, name)
			i.revisions.forget(name)
		}
	}
	installed := maps.Clone(i.installed)
	i.mu.Unlock()
	rev, c := i.Current()
	return errors.Join(i.mirrors.sync(ctx, nodes, installed, rev, c), i.observe(ctx, nodes, desired, keys, installed))
}

func (i *Installer) observe(ctx context.Context, nodes map[string]core.Node, desired *operated.RollOut, keys []Key, installed map[string]int) error {
	rev, c := i.Current()
	o := Observed{Keys: keys, Desired: desired, Revision: rev, Converged: true}
	all, err := i.Revisions(ctx)
	if err != nil {
		return err
	}
	o.Revisions = slices.Sorted(maps.Keys(all))
	for name, n := range nodes {
		if !i.revisions.wanted(name) {
			o.Converged = false
		}
		if installed[name] == rev {
			continue
		}
		o.Converged = false
		for id := range n.Plugins {
			if !slices.ContainsFunc(c.Plugins, func(p revision.Plugin) bool { return p.KeyID == id }) {
				o.Ends = append(o.Ends, name)
				break
			}
		}
	}
	slices.Sort(o.Ends)
	i.Observed(o.Decision())
	return nil
}
