package operand

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
	"github.com/kmsharness/kmsharness/operator/staticpods"
)

// Installer rolls out what an operator wants: each change of the Secret staticpods.DesiredName is a revision, which one node after another gets.
type Installer struct {
	Options
	mirrors *mirrors
	kubelet *kubelet // of the pods of a whole operator

	turn      sync.Mutex // of a step, or of a rollback
	mu        sync.Mutex
	revision  int // the newest
	desired   map[string][]byte
	current   staticpods.Configuration // of the newest revision; zero before there is one
	installed map[string]int
	assigned  map[string]assignment    // by the pods of a whole operator, to nodes
	wanted    staticpods.Configuration // by a whole operator
	back      map[string]int           // nodes that were rolled back, with the newest revision of that time: they stay until there is another
}

// firstRevision is that of the pods that an operator finds. It has no encryption configuration.
const firstRevision = 1

func newInstaller(o Options) *Installer {
	return &Installer{Options: o, mirrors: &mirrors{Options: o, pods: map[string]mirror{}}, kubelet: &kubelet{o}, revision: firstRevision,
		installed: map[string]int{}, assigned: map[string]assignment{}, back: map[string]int{}}
}

// assignment is the revision that a node is to have, and what is in it; zero before it has one.
type assignment struct {
	revision int
	staticpods.Configuration
}

// Current is the newest revision, with which a new pod begins. The configuration is zero if it has no encryption configuration.
func (i *Installer) Current() (int, staticpods.Configuration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.revision, i.current
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
	i.installed[node], i.back[node] = revision, i.revision
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
	if i.Whole {
		if err := i.follow(ctx, nodes); err != nil {
			return err
		}
	}
	desired, err := i.read(ctx)
	if err != nil {
		return err
	}
	return errors.Join(i.roll(ctx, nodes), i.show(ctx, desired))
}

// follow notes what the pods of a whole operator have installed. A revision whose Secret is not there has no encryption configuration.
func (i *Installer) follow(ctx context.Context, nodes map[string]core.Node) error {
	assigned, err := i.kubelet.step(ctx, nodes)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, node := range slices.Sorted(maps.Keys(assigned)) {
		i.mu.Lock()
		has := i.assigned[node].revision
		i.mu.Unlock()
		if assigned[node] <= has {
			continue
		}
		var c staticpods.Configuration
		s, err := i.Client.CoreV1().Secrets(Namespace).Get(ctx, staticpods.ConfigName(assigned[node]), metav1.GetOptions{})
		if err == nil {
			c, err = staticpods.ReadConfiguration(s)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read revision %d: %w", assigned[node], err)
		}
		i.mu.Lock()
		i.assigned[node] = assignment{assigned[node], c}
		if assigned[node] >= i.revision {
			i.revision, i.current = assigned[node], c
		}
		i.mu.Unlock()
		i.Log.Info("an installer pod has ended", "node", node, "revision", assigned[node], "plugins", c.KeyIDs())
	}
	return nil
}

// read reads what is wanted, and makes a revision of it if it has changed. It is nil before there is anything.
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
	return &read, i.revise(ctx, s, c)
}

// revise makes a revision of a configuration, unless the newest has it.
func (i *Installer) revise(ctx context.Context, s *corev1.Secret, c staticpods.Configuration) error {
	if i.Whole {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.wanted = c
		return nil
	}
	i.mu.Lock()
	next, same := i.revision+1, reflect.DeepEqual(i.desired, s.Data)
	i.mu.Unlock()
	if same {
		return nil
	}
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: staticpods.ConfigName(next)}, Data: s.Data}
	_, err := i.Client.CoreV1().Secrets(Namespace).Create(ctx, copied, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) { // the answer to a request before was lost
		_, err = i.Client.CoreV1().Secrets(Namespace).Update(ctx, copied, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return fmt.Errorf("make revision %d: %w", next, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.revision, i.desired, i.current = next, s.Data, c
	i.Log.Info("a new revision", "revision", next, "plugins", c.KeyIDs())
	return nil
}

// roll brings the first node that does not have the newest revision further. The others wait for it.
func (i *Installer) roll(ctx context.Context, nodes map[string]core.Node) error {
	newest, current := i.Current()
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		rev, c := newest, current
		i.mu.Lock()
		has := i.installed[name]
		if has == 0 {
			has, i.installed[name] = firstRevision, firstRevision
		}
		if assigned := i.assigned[name]; i.Whole {
			rev, c = max(assigned.revision, firstRevision), assigned.Configuration
		}
		back := i.back[name] == rev
		i.mu.Unlock()
		if has == rev || back {
			continue
		}
		if nodes[name].Unavailable {
			return fmt.Errorf("install revision %d on %s: the node is unavailable", rev, name)
		}
		i.mirrors.replace(name, rev, c)
		if i.Whole && len(c.File) == 0 { // nothing of it is in the pod
			i.Joined(name, rev)
			return nil
		}
		if err := i.install(ctx, name, nodes[name], rev, c); err != nil {
			return fmt.Errorf("install revision %d on %s: %w", rev, name, err)
		}
		i.Joined(name, rev)
		return nil
	}
	return nil
}

// install gives a node's pod what a revision has: its plugins before its API server, its API server before its reporter. What the pod loses goes in
// the opposite order. A pod that is replaced gets all of it together.
func (i *Installer) install(ctx context.Context, name string, n core.Node, rev int, c staticpods.Configuration) error {
	if err := i.Pods.StartPlugins(ctx, name, c.Plugins); err != nil {
		return err
	}
	loaded := n.Loaded == rev && n.Up
	if i.Pods.Anew() && !loaded {
		if err := i.sidecars(ctx, name, n, c); err != nil {
			return err
		}
	}
	if !loaded {
		if err := i.Pods.RollOut(ctx, name, rev, c.File); err != nil {
			return err
		}
		return errNotLoaded
	}
	return i.sidecars(ctx, name, n, c)
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

// show writes the pods and the operator's node statuses as they are now, and passes on what the objects say.
func (i *Installer) show(ctx context.Context, desired *operated.RollOut) error {
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
			delete(i.assigned, name)
			delete(i.back, name)
		}
	}
	rev, c, installed := i.revision, i.current, maps.Clone(i.installed)
	i.mu.Unlock()
	return errors.Join(i.mirrors.sync(ctx, nodes, installed, rev, c), i.observe(ctx, nodes, desired, rev, c, installed))
}

// hasWanted reports whether a whole operator has assigned to a node what it wants.
func (i *Installer) hasWanted(node string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return reflect.DeepEqual(i.assigned[node].Configuration, i.wanted)
}

func (i *Installer) observe(ctx context.Context, nodes map[string]core.Node, desired *operated.RollOut, rev int, c staticpods.Configuration, installed map[string]int) error {
	o := Observed{Desired: desired, Revision: rev, Converged: true}
	keys, err := i.Client.CoreV1().Secrets(ManagedNamespace).List(ctx, metav1.ListOptions{LabelSelector: KeySelector})
	if err != nil {
		return fmt.Errorf("list the keys: %w", err)
	}
	for n := range keys.Items {
		if !strings.HasPrefix(keys.Items[n].Name, keyPrefix) {
			continue
		}
		k, err := ReadKey(&keys.Items[n])
		if err != nil {
			return err
		}
		o.Keys = append(o.Keys, k)
	}
	if i.Whole {
		all, err := i.Revisions(ctx)
		if err != nil {
			return err
		}
		o.Revisions = slices.Sorted(maps.Keys(all))
	} else {
		for n := firstRevision + 1; n <= rev; n++ { // the installer removes none
			o.Revisions = append(o.Revisions, n)
		}
	}
	for name, n := range nodes {
		if i.Whole && !i.hasWanted(name) { // a revision with what is wanted may not be there yet
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
