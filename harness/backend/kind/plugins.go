package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/tail"
)

// newPlugin is the plugin of a keyID in a container of the API server's pod of a node.
func (p *plane) newPlugin(node, keyID, unit string) (*live.Plugin, error) {
	l := p.layout.node(node)
	return p.pluginIn(l.pod(""), unit, history.Process{Role: history.RolePlugin, Node: node, KeyID: keyID}, live.HostSocket(l.sockets(), keyID), func() string { return p.key(keyID) }, &p.profile)
}

// key is the name of the key behind the plugins of a keyID.
func (p *plane) key(keyID string) string { return p.kms.Key("", keyID) }

// pluginIn is a plugin in the container of a unit; socket is on this machine, empty if it cannot be seen there, and key names its key at the
// remote KMS.
func (p *plane) pluginIn(f podFiles, unit string, identity history.Process, socket string, key func() string, profile *live.Profile) (*live.Plugin, error) {
	node, keyID := identity.Node, identity.KeyID
	control, journal := "ctl-"+keyID+".sock", journalPrefix+node+"-"+keyID+journalSuffix
	g, err := live.NewPlugin(node, keyID, socket, f.file(control), f.file(journal))
	if err != nil {
		return nil, err
	}
	g.Identity = identity
	u, err := newHeld(f.dir, unit)
	if err != nil {
		return nil, err
	}
	u.command = func(context.Context) ([]string, error) {
		words := append([]string{"/" + live.PluginProgram}, live.PluginArgs(node, keyID, inNodeSocket, f.in(control), f.in(journal), inNodeShared+"/kms.sock", key())...)
		// The reporter is not root, and nobody else can reach the folder.
		return append(append(append(words, "--socket-mode=0666"), profile.Args()...), p.Programs.PluginArgs...), nil
	}
	u.ready = g.Healthy
	g.Unit = u
	return g, nil
}

// pluginsIn makes the containers for plugins of a node's pod known, before they are there; the plugins of keyIDs find their command, the
// other containers wait for one.
func (p *plane) pluginsIn(ctx context.Context, n *live.Node, all *places, at place, keyIDs []string) error {
	for _, s := range at.slots {
		if err := p.followWhoever(at.files.dir, s.unit, s.who); err != nil {
			return err
		}
	}
	all.put(n.Name, at)
	for _, k := range keyIDs {
		g, err := all.take(ctx, n, k)
		if err != nil {
			return err
		}
		if err := g.Unit.(*held).writeCommand(ctx); err != nil {
			return err
		}
	}
	return nil
}

// AddPlugin implements live.Plane.
func (p *plane) AddPlugin(ctx context.Context, n *live.Node, keyID string) (*live.Plugin, error) {
	return p.plugins.start(ctx, n, keyID)
}

// places are the plugins in the pods of an API server: which is in which of their containers. It is safe for concurrent use.
type places struct {
	// journals are those of hold, which are read before a container changes hands: its lines are about who was in it.
	journals *tail.Set

	mu  sync.Mutex
	all map[string]place // by node
}

// place is what the pod of a node has for plugins.
type place struct {
	files podFiles
	slots []*slot
	// make makes the plugin of a keyID in the container of a unit.
	make func(keyID, unit string) (*live.Plugin, error)
}

// put makes the containers of a node's pod known.
func (p *places) put(node string, at place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[string]place{}
	}
	p.all[node] = at
}

// drop forgets those of a node that is gone.
func (p *places) drop(node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, node)
}

// take gives the plugin of a keyID a container, and makes it one of its node's. Whatever ran there before has ended, and nobody needs it.
func (p *places) take(ctx context.Context, n *live.Node, keyID string) (*live.Plugin, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := n.Plugin(keyID); g != nil {
		return g, nil
	}
	at := p.all[n.Name]
	free := freeSlot(at.slots, n, keyID)
	if free == nil {
		return nil, fmt.Errorf("plugin %s/%s: each of the %d containers that the pod has for plugins is taken, by %s: one has to end before the next can start", n.Name, keyID, len(at.slots), strings.Join(takenBy(at.slots), ", "))
	}
	g, err := at.make(keyID, free.unit)
	if err != nil {
		return nil, err
	}
	if free.plugin() != nil {
		if err := errors.Join(free.plugin().Stop(ctx), p.journals.Poll()); err != nil {
			return nil, fmt.Errorf("plugin %s/%s takes the place of %s: %w", n.Name, keyID, free.plugin().KeyID, err)
		}
	}
	free.is.Store(g)
	n.AddPlugin(g)
	return g, nil
}

// start starts the plugin of a keyID, in a container of its own.
func (p *places) start(ctx context.Context, n *live.Node, keyID string) (*live.Plugin, error) {
	g, err := p.take(ctx, n, keyID)
	if err != nil {
		return nil, err
	}
	return g, g.Start(ctx)
}

// reset starts the plugins that a scenario begins with, without faults, and ends the others.
func (p *places) reset(ctx context.Context, n *live.Node, keyIDs []string) error {
	p.mu.Lock()
	at := p.all[n.Name]
	p.mu.Unlock()
	var errs []error
	for _, s := range at.slots {
		if g := s.plugin(); g != nil && !(s.usedBy(n) && slices.Contains(keyIDs, g.KeyID)) {
			errs = append(errs, g.Stop(ctx))
			if s.usedBy(n) {
				n.RemovePlugin(g.KeyID)
			}
		}
	}
	errs = append(errs, forgetJournals(at.files, n.Plugins()))
	for _, k := range keyIDs {
		g, err := p.start(ctx, n, k)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, g.Clear(ctx))
	}
	return errors.Join(errs...)
}

// slots is how many containers for plugins every pod of an API server has. An operator never needs more than two plugins at a time, the
// writer and the one before it or after it; one that could not be ended yet is not in the way of the next.
const slots = 3

// slot is a container for a plugin. The containers of a pod are fixed, and the keyIDs of an operator's plugins are not: each container waits
// below hold for a command, and has whichever plugin is in it at the moment.
type slot struct {
	unit string
	is   atomic.Pointer[live.Plugin] // that is in it, or was the last
}

// slotUnits are the units of a pod's containers for plugins.
func slotUnits() []string {
	units := make([]string, slots)
	for i := range units {
		units[i] = unitOfPlugin(strconv.Itoa(i + 1))
	}
	return units
}

func newSlots() []*slot {
	all := make([]*slot, 0, slots)
	for _, unit := range slotUnits() {
		all = append(all, &slot{unit: unit})
	}
	return all
}

// plugin is the one that is in it, or was the last; nil: none was.
func (s *slot) plugin() *live.Plugin { return s.is.Load() }

// usedBy says whether the plugin that is in it is one of the node's. One that is not is gone: a plugin of the same keyID that comes later is
// another.
func (s *slot) usedBy(n *live.Node) bool {
	g := s.plugin()
	return g != nil && n.Plugin(g.KeyID) == g
}

// who is whose the lines of the container's journal are; nobody's while no plugin was in it.
func (s *slot) who() (history.Process, bool) {
	if g := s.plugin(); g != nil {
		return g.Identity, true
	}
	return history.Process{}, false
}

// freeSlot is a container in which there is no plugin of the node; nil: there is none. The one that bears the keyID comes first, so that
// keyIDs 1 and 2 are always found where their names say.
func freeSlot(all []*slot, n *live.Node, keyID string) *slot {
	var free *slot
	for _, s := range all {
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

func takenBy(all []*slot) []string {
	var ids []string
	for _, s := range all {
		if g := s.plugin(); g != nil {
			ids = append(ids, g.KeyID)
		}
	}
	return ids
}

// inUnit says whether a plugin runs in the container of a unit.
func inUnit(g *live.Plugin, unit string) bool {
	u, ok := g.Unit.(*held)
	return ok && u.name == unit
}

// Files of the plugins of a pod.
const (
	journalPrefix = "journal-"
	journalSuffix = ".jsonl"
)

// forgetJournals empties the journals of plugins that are not of the node: a scenario that starts one reads its journal from the
// beginning, and what was called in the scenario before is no call of this one.
func forgetJournals(at podFiles, living []*live.Plugin) error {
	all, err := filepath.Glob(at.file(journalPrefix + "*" + journalSuffix))
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range all {
		if !slices.ContainsFunc(living, func(g *live.Plugin) bool { return g.Journal == file }) {
			errs = append(errs, forget(file))
		}
	}
	return errors.Join(errs...)
}

// forget empties a journal, if there is one.
func forget(journal string) error {
	if err := os.Truncate(journal, 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// TryPlugin implements live.Plane.
func (p *plane) TryPlugin(ctx context.Context, keyID string) (*live.Plugin, error) {
	return p.try(ctx, live.HostPlugin{KeyID: keyID, Profile: &p.profile})
}

// TryPlugin implements live.Plane.
func (f *fleet) TryPlugin(ctx context.Context, keyID string) (*live.Plugin, error) {
	return f.try(ctx, live.HostPlugin{APIServer: f.Stand.APIServer, KeyID: keyID, Profile: &f.profile})
}

// try starts a plugin for a check, as a process of this machine, as the remote KMS is: so no node that a scenario takes away takes a check
// with it, and none waits for a scheduler whose API server has just been away.
func (p *plane) try(ctx context.Context, g live.HostPlugin) (*live.Plugin, error) {
	g.Node, g.Dir, g.Logs, g.KMS = live.Preflight, p.layout.preflight(g.APIServer), p.layout.logs(), p.kms
	if err := forget(g.Journal()); err != nil { // the first check of every scenario has the same name
		return nil, fmt.Errorf("try plugin %s: %w", g, err)
	}
	return g.Try(ctx, p.Host)
}
