package operand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/kmsharness/kmsharness/internal/turn"
	"github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Installer gives nodes the revision that they are to have: one after another, where pods are replaced.
type Installer struct {
	Options
	sources   *sources
	mirrors   *mirrors
	revisions *revisions

	turn turn.Turn // of a step, or of a rollback
	read struct {  // of what is wanted
		version string
		is      RollOut
	}
	mu        sync.Mutex
	installed map[string]int
	back      map[string]int  // nodes that were rolled back, with the newest revision of that time: they stay until there is another
	placed    map[string]bool // nodes with another pod than the API has
	said      claim           // of the round before
}

// claim is what an operator says of a key that everything lies under. The zero claim: there is no such key.
type claim struct {
	key uint64
	kek string
}

func newInstaller(o Options, s *sources) *Installer {
	return &Installer{Options: o, sources: s, turn: turn.New(), mirrors: &mirrors{Options: o, nodeUID: s.nodeUID, pods: map[string]mirror{}}, revisions: newRevisions(o), installed: map[string]int{}, back: map[string]int{}, placed: map[string]bool{}}
}

// Current is the newest revision, with which a new pod begins.
func (i *Installer) Current() Revision { return i.revisions.newest() }

// NumberOf is the newest revision if it has a configuration, and else the first: then the pod of a node that begins with it is replaced.
func (i *Installer) NumberOf(c operator.Configuration) int {
	if newest := i.revisions.newest(); reflect.DeepEqual(newest.Configuration, c) {
		return newest.Number
	}
	return firstRevision
}

// Placed notes that a pod with a configuration has taken the place of what was on a node.
func (i *Installer) Placed(node string, c operator.Configuration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.installed[node], i.placed[node] = i.NumberOf(c), true
}

// Revisions are those that there are with an encryption configuration, by number.
func (i *Installer) Revisions() (map[int]operator.Configuration, error) {
	all := map[int]operator.Configuration{}
	for _, s := range items[*corev1.Secret](i.sources.revisions) {
		number, is := operator.RevisionNamed(s.Name)
		if !is {
			continue
		}
		var err error
		if all[number], _, err = readRevision(s); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Replace has the pod of a node replaced by one of a revision. A node that is rolled back stays until there is another revision, or until it is replaced by one of
// the newest.
func (i *Installer) Replace(node string, r Revision, back bool, remake func() error) error {
	i.turn.Lock()
	defer i.turn.Unlock()
	if err := remake(); err != nil {
		return err
	}
	if back {
		i.mirrors.replace(node, r)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.installed[node] = r.Number; back {
		i.back[node] = i.revisions.newest().Number
	}
	return nil
}

// step reads what is wanted, passes it on, brings nodes further towards it, and shows in the API what came of it.
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
	desired, err := i.readDesired(ctx)
	if err != nil {
		return err
	}
	keys, err := i.readKeys()
	if err != nil {
		return err
	}
	if err := i.reportClaim(ctx, desired, keys); err != nil {
		return err
	}
	i.observe(nodes, desired, keys)
	return errors.Join(i.roll(ctx, nodes), i.show(ctx))
}

// readDesired reads what is wanted, and notes it. It is nil before there is anything.
func (i *Installer) readDesired(ctx context.Context) (*RollOut, error) {
	s := secret(i.sources.secrets, revision.Namespace, i.DesiredName())
	if s == nil {
		return nil, nil
	}
	if s.ResourceVersion == i.read.version {
		return &i.read.is, nil
	}
	c, is, err := readRevision(s)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := i.revisions.want(ctx, s, c); err != nil {
		return nil, err
	}
	i.read.version, i.read.is = s.ResourceVersion, is
	return &is, nil
}

// roll brings nodes that do not have their revision further. Where pods are replaced the others wait for the first of them, and elsewhere for one with which
// something is wrong.
func (i *Installer) roll(ctx context.Context, nodes map[string]Node) error {
	var errs []error
	names := slices.Sorted(maps.Keys(nodes))
	slices.SortStableFunc(names, func(a, b string) int { return len(nodes[b].Waiting) - len(nodes[a].Waiting) }) // nobody needs what cannot run
	for _, name := range names {
		rev := i.revisions.of(name)
		i.mu.Lock()
		has := cmp.Or(i.installed[name], firstRevision)
		i.installed[name] = has
		back := i.back[name] == rev.Number
		i.mu.Unlock()
		if has == rev.Number || back {
			continue
		}
		err := i.install(ctx, name, nodes[name], rev)
		if err == nil {
			i.mu.Lock()
			i.installed[name] = rev.Number
			i.mu.Unlock()
		} else {
			errs = append(errs, fmt.Errorf("install revision %d on %s: %w", rev.Number, name, err))
		}
		if err == nil && i.Pods.Anew() || err != nil && !errors.Is(err, ErrUnfinished) {
			break
		}
	}
	return errors.Join(errs...)
}

func (i *Installer) install(ctx context.Context, name string, n Node, rev Revision) error {
	if n.Unavailable {
		return fmt.Errorf("the node is unavailable: %w", ErrUnfinished)
	}
	i.mirrors.replace(name, rev)
	if len(rev.File) == 0 && !i.Pods.Anew() {
		return nil // nothing of it is in the pod
	}
	return i.Pods.Install(ctx, name, rev)
}

// readKeys reads the operator's keys.
func (i *Installer) readKeys() (all []Key, err error) {
	prefix := revision.KeyPrefix(i.Component)
	for _, s := range items[*corev1.Secret](i.sources.secrets) {
		if !strings.HasPrefix(s.Name, prefix) || s.Labels[revision.ComponentLabel] != string(i.Component) {
			continue // other Secrets may have the label
		}
		k, err := ReadKey(s)
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

// reportClaim reports a claim that is news: before a revision is installed that lacks a key because of it. What a migrator did is no claim: an operator may
// know that it does not count.
func (i *Installer) reportClaim(ctx context.Context, desired *RollOut, keys []Key) error {
	var said claim
	if newest := Newest(keys); newest.ID != 0 && desired != nil && newest.migrated(desired.Resources) {
		said = claim{newest.ID, newest.MigratedKEK}
	}
	if said.key != 0 && (said.key != i.said.key || said.kek != "" && said.kek != i.said.kek) {
		if err := i.Pods.Migrated(ctx); err != nil {
			return err
		}
	}
	i.said = said
	return nil
}

// show writes the pods and the operator's node statuses as they are now.
func (i *Installer) show(ctx context.Context) error {
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
	for name := range i.placed {
		i.mirrors.forget(name)
	}
	clear(i.placed)
	installed := maps.Clone(i.installed)
	i.mu.Unlock()
	return i.mirrors.sync(ctx, nodes, installed, i.Current())
}

// observe passes on what the objects say.
func (i *Installer) observe(nodes map[string]Node, desired *RollOut, keys []Key) {
	newest := i.Current()
	o := Observed{Keys: keys, Desired: desired, Revision: newest.Number, Converged: true}
	for _, s := range items[*corev1.Secret](i.sources.revisions) {
		if number, is := operator.RevisionNamed(s.Name); is {
			o.Revisions = append(o.Revisions, number)
		}
	}
	slices.Sort(o.Revisions)
	i.mu.Lock()
	installed := maps.Clone(i.installed)
	i.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if !i.revisions.wanted(name) {
			o.Converged = false
		}
		if installed[name] == newest.Number {
			continue
		}
		o.Converged = false
		if slices.ContainsFunc(nodes[name].Plugins, func(id uint64) bool { _, stays := newest.Of(id); return !stays }) {
			o.Ends = append(o.Ends, name)
		}
	}
	d := o.Decision()
	if i.Own {
		i.ownRevisions(d)
	}
	i.Observed(d)
}
