package kind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/internal/host"
)

// pluginContainerUnits are the units of the containers for plugins of a pod where no operator says which plugins there are.
func pluginContainerUnits() []string { return unitsOfPlugins([]string{"1", "2", "3"}) }

// unitsOfPlugins are the units of the containers for plugins of a pod whose plugins an operator chose.
func unitsOfPlugins(keyIDs []string) []string {
	units := make([]string, len(keyIDs))
	for i, k := range keyIDs {
		units[i] = unitOfPlugin(k)
	}
	return units
}

// pluginContainer is a container for a plugin. It waits below the supervisor for a command, and has whichever plugin is in it at the moment.
type pluginContainer struct {
	unit string
	is   atomic.Pointer[cluster.Plugin] // that is in it, or was the last; nil: none was
}

// usedBy reports whether the plugin that is in it is one of the node's. One that is not is gone: a plugin of the same keyID that comes later
// is another.
func (s *pluginContainer) usedBy(n *cluster.Node) bool {
	g := s.is.Load()
	return g != nil && n.Plugin(g.KeyID) == g
}

// who is the plugin that the lines of the container's journal are about; none while no plugin was in it.
func (s *pluginContainer) who() (history.Process, bool) {
	if g := s.is.Load(); g != nil {
		return g.Identity, true
	}
	return history.Process{}, false
}

// heldBy are the units of a plugin: of the fake one, or of one under test and of the fake one in front of it. They are nil for a unit of
// another kind.
func heldBy(u cluster.Unit) (plugin, front *held) {
	if f, ok := u.(*cluster.Fronted); ok {
		plugin, _ = f.Unit.(*held)
		front, _ = f.Front.(*held)
		return plugin, front
	}
	plugin, _ = u.(*held)
	return plugin, plugin
}

// podPlugins are the containers for plugins of an API server's pod, and the plugins in them. It is safe for concurrent use.
type podPlugins struct {
	files podFiles
	units *units // whose journals are read before a container changes hands: its lines are about the plugin that was in it
	// make makes the plugin of a keyID in the container of a unit.
	make func(keyID, unit string) (*cluster.Plugin, error)
	// underTest: a plugin under test is in a container of its own, and the fake one in front of it is none of the plugins that the history names.
	underTest bool

	mu               sync.Mutex
	pluginContainers []*pluginContainer          // of the pod as it is
	known            map[string]*pluginContainer // of the pod as it ever was, by unit
	images           map[string]string           // of those for which the operator chose one, by unit
}

func newPodPlugins(files podFiles, u *units, containers []string, create func(keyID, unit string) (*cluster.Plugin, error)) *podPlugins {
	p := &podPlugins{files: files, units: u, make: create, known: map[string]*pluginContainer{}}
	p.become(containers, nil, nil)
	return p
}

// names are the units of the pod's containers for plugins.
func (p *podPlugins) names() []string {
	var units []string
	for _, s := range p.containers() {
		units = append(units, s.unit)
	}
	return units
}

func (p *podPlugins) containers() []*pluginContainer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.pluginContainers)
}

// become gives the pod other containers for plugins, while it is down. Plugins that were in containers which are gone are the node's no longer; n is
// nil if there are none yet. Some have images of their own, by keyID.
func (p *podPlugins) become(units []string, images map[string]string, n *cluster.Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.pluginContainers {
		if g := s.is.Load(); g != nil && !slices.Contains(units, s.unit) {
			if s.usedBy(n) {
				n.RemovePlugin(g.KeyID)
			}
			g.Forget()
			s.is.Store(nil)
		}
	}
	p.pluginContainers = nil
	for _, unit := range units {
		if p.known[unit] == nil {
			p.known[unit] = &pluginContainer{unit: unit}
		}
		p.pluginContainers = append(p.pluginContainers, p.known[unit])
	}
	p.images = map[string]string{}
	for keyID, image := range images {
		p.images[unitOfPlugin(keyID)] = image
	}
}

// chosen are the images of containers for which the operator chose one, by unit.
func (p *podPlugins) chosen() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.images)
}

// prepare makes the containers known before they are there; the fake plugins of keyIDs find their command, the other containers wait for one.
func (p *podPlugins) prepare(ctx context.Context, n *cluster.Node, keyIDs []string) error {
	for _, s := range p.containers() {
		unit := s.unit
		if p.underTest {
			unit = unitUnderTest(unit)
			if err := p.files.makeUnderTest(unit); err != nil {
				return err
			}
		}
		if err := p.units.follow(p.files.unit(unit), n.Name, s.who); err != nil {
			return err
		}
	}
	for _, k := range keyIDs {
		g, err := p.take(ctx, n, k)
		if err != nil {
			return err
		}
		if _, front := heldBy(g.Unit); front != nil {
			err = front.writeCommand(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// free is a container in which there is no plugin of the node; nil: there is none. The one that bears the keyID comes first, so that
// keyIDs 1 and 2 are always found where their names say.
func (p *podPlugins) free(n *cluster.Node, keyID string) *pluginContainer {
	var free *pluginContainer
	for _, s := range p.pluginContainers {
		if s.usedBy(n) {
			continue
		}
		if s.unit == unitOfPlugin(keyID) {
			return s
		}
		if free == nil {
			free = s
		}
	}
	return free
}

// take gives the plugin of a keyID a container, and makes it one of its node's. Whatever ran there before has ended, and nobody needs it.
func (p *podPlugins) take(ctx context.Context, n *cluster.Node, keyID string) (*cluster.Plugin, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := n.Plugin(keyID); g != nil {
		return g, nil
	}
	free := p.free(n, keyID)
	if free == nil {
		var taken []string
		for _, s := range p.pluginContainers {
			taken = append(taken, s.is.Load().KeyID)
		}
		return nil, fmt.Errorf("plugin %s/%s: each of the %d containers that the pod has for plugins is taken, by %s: one has to end before the next can start",
			n.Name, keyID, len(p.pluginContainers), strings.Join(taken, ", "))
	}
	g, err := p.make(keyID, free.unit)
	if err != nil {
		return nil, err
	}
	if before := free.is.Load(); before != nil {
		if err := errors.Join(before.End(ctx), p.units.journals.Poll()); err != nil {
			return nil, fmt.Errorf("plugin %s/%s takes the place of %s: %w", n.Name, keyID, before.KeyID, err)
		}
	}
	free.is.Store(g)
	n.AddPlugin(g)
	return g, nil
}

// start starts the plugin of a keyID, in a container of its own.
func (p *podPlugins) start(ctx context.Context, n *cluster.Node, keyID string) (*cluster.Plugin, error) {
	g, err := p.take(ctx, n, keyID)
	if err != nil {
		return nil, err
	}
	return g, g.Start(ctx)
}

// startUnderTest starts the plugins under test when the supervisors of their containers answer, in turn where they share a folder. No
// supervisor starts one for the first time by itself: it finds no command.
func (p *podPlugins) startUnderTest(ctx context.Context) error {
	for _, s := range p.containers() {
		g := s.is.Load()
		if g == nil || !p.underTest {
			continue
		}
		plugin, _ := heldBy(g.Unit)
		if err := plugin.awaitSupervisor(ctx); err != nil {
			return err
		}
		if err := g.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// reset starts the plugins that a scenario begins with, without faults, and ends the others. A plugin under test is started anew: what it
// remembers of the scenario before is not known.
func (p *podPlugins) reset(ctx context.Context, n *cluster.Node, keyIDs []string) error {
	var errs []error
	for _, s := range p.containers() {
		if g := s.is.Load(); g != nil && !(s.usedBy(n) && slices.Contains(keyIDs, g.KeyID)) {
			errs = append(errs, g.End(ctx))
			if s.usedBy(n) {
				n.RemovePlugin(g.KeyID)
			}
		} else if g != nil && p.underTest {
			errs = append(errs, g.Stop(ctx))
		}
	}
	var living []string
	for _, g := range n.Plugins() {
		living = append(living, g.Journal)
	}
	errs = append(errs, cluster.ForgetJournals(p.files.file(journalPrefix+"*"+journalSuffix), living))
	for _, k := range keyIDs {
		g, err := p.start(ctx, n, k)
		if err == nil {
			err = g.Clear(ctx)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// inUnit reports whether a plugin runs in the container of a unit.
func inUnit(g *cluster.Plugin, unit string) bool {
	u, _ := heldBy(g.Unit)
	return u != nil && u.unit == unit
}

// Files of the plugins of a pod.
const (
	journalPrefix = "journal-"
	journalSuffix = ".jsonl"
)

// forget empties a journal, if there is one.
func forget(journal string) error {
	if err := os.Truncate(journal, 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// pluginsOf are the plugins of the pod of an API server on a node, in containers; socket gives a plugin's on this machine, empty where
// it cannot be seen there.
func (p *controlPlane) pluginsOf(apiServer, node string, profile *cluster.Profile, containers []string, socket func(keyID string) string) *podPlugins {
	f := p.layout.node(node).pod(apiServer)
	all := newPodPlugins(f, p.units, containers, func(keyID, unit string) (*cluster.Plugin, error) {
		control, journal := controlSocket(keyID), journalPrefix+node+"-"+keyID+journalSuffix
		g, err := cluster.NewPlugin(host.Host{}, node, keyID, socket(keyID), f.file(control), f.file(journal))
		if err != nil {
			return nil, err
		}
		g.Identity, g.User = history.Process{Role: history.RolePlugin, APIServer: apiServer, Node: node, KeyID: keyID}, 0 // root of its container
		u, err := newHeld(unitKey{f.dir, unit})
		if err != nil {
			return nil, err
		}
		g.Unit, u.ready = u, g.Healthy
		args := func() []string {
			return cluster.PluginArgs(node, keyID, inNodeSocket, f.in(control), f.in(journal), inNodeShared+"/kms.sock", p.kms.Key(apiServer, keyID))
		}
		if p.archives.images.underTest() {
			behind, err := f.putUnderTest(g, u, p.Host, p.layout.shared())
			if err != nil {
				return nil, err
			}
			args = func() []string {
				return cluster.FrontArgs(node, keyID, inNodeSocket, f.in(control), f.in(journal), behind)
			}
		}
		u.command = func(context.Context) ([]string, error) {
			return slices.Concat([]string{"/" + cluster.PluginProgram}, args(), []string{"--socket-mode=" + socketMode}, profile.Args(), p.Programs.PluginArgs), nil
		}
		return g, nil
	})
	all.underTest = p.archives.images.underTest()
	return all
}

// putUnderTest makes g a plugin under test, in the container behind that of a fake plugin, and gives its values as the pod sees them. The
// folder of all nodes is shared on this machine.
func (f podFiles) putUnderTest(g *cluster.Plugin, front *held, h *cluster.Host, shared string) (inPod cluster.Instance, err error) {
	inPod, err = cluster.NewInstance(g.Identity, f.in(realSockets), f.seen, inNodeShared)
	if err != nil {
		return nil, err
	}
	onHost, err := cluster.NewInstance(g.Identity, f.file(realSockets), f.dir, shared)
	if err != nil {
		return nil, err
	}
	u, err := newHeld(f.unit(unitUnderTest(front.unit)))
	if err != nil {
		return nil, err
	}
	u.ready = onHost.Answers
	u.command = func(context.Context) ([]string, error) {
		program, args, err := cluster.CommandOf(h.Programs.Plugin, inPod)
		return append([]string{program}, args...), errors.Join(err, onHost.MakeFolders(), f.giveUnderTest(shared))
	}
	g.PutUnderTest(h, u, front, onHost)
	user, _ := userUnderTest()
	g.User = int(user)
	return inPod, nil
}

// underTest are the folders of the plugins under test of a pod; shared is the folder of all nodes, on this machine.
func (f podFiles) underTest(shared string) []podFiles {
	return []podFiles{f.sub(realSockets), f.sub(cluster.PluginState), podFiles{shared, inNodeShared}.sub(cluster.PluginShared)}
}

// makeUnderTest makes what the container of a unit mounts, apart from the folder of all nodes.
func (f podFiles) makeUnderTest(unit string) error {
	var errs []error
	for _, at := range []podFiles{f.of(unit), f.sub(realSockets), f.sub(cluster.PluginState)} {
		errs = append(errs, os.MkdirAll(at.dir, 0o700))
	}
	return errors.Join(errs...)
}

// giveUnderTest makes the folders, with all that is in them, the plugins' own where the harness is root. Otherwise they are the harness's, and so are the
// plugins.
func (f podFiles) giveUnderTest(shared string) error {
	if os.Getuid() != 0 {
		return nil
	}
	user, group := userUnderTest()
	var errs []error
	for _, at := range f.underTest(shared) {
		errs = append(errs, filepath.WalkDir(at.dir, func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				err = os.Lchown(path, int(user), int(group))
			}
			if errors.Is(err, fs.ErrNotExist) { // a plugin of another node has removed it
				return nil
			}
			return err
		}))
	}
	return errors.Join(errs...)
}

// AddPlugin implements cluster.PluginStarter, also for aggregated API servers.
func (p *controlPlane) AddPlugin(ctx context.Context, n *cluster.Node, keyID string) (*cluster.Plugin, error) {
	return serverOf(n).plugins.start(ctx, n, keyID)
}

// TryPlugin implements cluster.PluginStarter.
func (p *controlPlane) TryPlugin(ctx context.Context, keyID string) (*cluster.Plugin, error) {
	return p.try(ctx, cluster.HostPlugin{KeyID: keyID, Profile: &p.profile})
}

// try starts a plugin for a check, as a process of this machine, as the remote KMS is: so no node that a scenario takes away takes a check
// with it, and none waits for a scheduler whose API server has just been away.
func (p *controlPlane) try(ctx context.Context, g cluster.HostPlugin) (*cluster.Plugin, error) {
	g.Node, g.Dir, g.Logs, g.KMS = cluster.Preflight, p.layout.preflight(g.APIServer), p.layout.logs(), p.kms
	if err := forget(g.Journal()); err != nil { // the first check of every scenario has the same name
		return nil, fmt.Errorf("try plugin %s: %w", g, err)
	}
	return g.Try(ctx, p.Host)
}
