package sim

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	"github.com/kmsharness/kmsharness/harness/history"
)

// kmsPlugin is a plugin instance: the fake plugin's own keys, answers and faults, without its sockets.
type kmsPlugin struct {
	proc
	node, keyID string
	source      string        // of its calls in a history
	lag         time.Duration // until it notices a rotation
	service     *plugin.Service
	program     *fault.Program
	calls       []*call // under way
	poll        *kernel.Timer
	polls       time.Time // when that is
	cut         string    // of the socket, when it was looked at last
	exited      bool      // a fault has taken it down for good
	stale       bool      // a socket file is left of an earlier life
	own         []string  // faults that are the plugin's own, by id: nobody releases them
}

// Measured of the fake plugin: how long it takes to start, and to answer from memory.
const (
	leastPluginBoot, mostPluginBoot = 15 * time.Millisecond, 40 * time.Millisecond
	leastAnswer, mostAnswer         = 30 * time.Microsecond, 150 * time.Microsecond
)

func newPlugin(w *world, node, keyID string) *kmsPlugin {
	p := &kmsPlugin{proc: proc{w: w, id: history.Process{Role: history.RolePlugin, APIServer: w.apiServer, Node: node, KeyID: keyID}}, node: node, keyID: keyID, source: "journal/" + node + "/" + keyID}
	p.init = func() {
		p.program = fault.NewProgram(w.k.Clock(), w.k.Rand().Uint64())
		p.service = &plugin.Service{Plugin: plugin.New(plugin.Options{Name: node + "/" + keyID, Key: w.hooks.key(w.apiServer, w.remoteKey(keyID)), Service: remote{w.kms},
			Clock: w.k.Clock(), NoticeLag: p.lag, Profile: w.profile, Decide: w.hooks.Session})}
		p.program.SetProfile(w.profile)
		p.own = w.hooks.inject(p.program)
		p.cut, p.stale, p.exited = "", false, false
	}
	p.boot = func(ready func()) { p.after(w.k.Between(leastPluginBoot, mostPluginBoot), ready) }
	p.up = p.pollNow
	p.gone = func() {
		p.stale = true
		p.poll.Stop()
		p.poll = nil
		p.abort("error reading from server: EOF")
	}
	p.term = func(ended func()) {
		p.after(w.k.Between(time.Millisecond, 10*time.Millisecond), func() { ended(); p.stale = false })
	}
	return p
}

// pollNow asks the remote KMS, and again as long as there is a rotation to be noticed: when that is due, or soon if it got no answer. It also asks
// when its lease is to be renewed. In between nothing changes that it would not be told of.
func (p *kmsPlugin) pollNow() {
	p.poll = nil
	err := p.service.Poll(p.w.ctx) // the view keeps the problem
	switch v := p.service.View(); {
	case v.Noticed.ID == v.Latest.ID:
	case err != nil:
		p.pollWithin(0)
	default:
		p.pollWithin(max(v.Seen.Add(p.service.NoticeLag()).Sub(p.w.k.Now()), 0))
	}
	if due := p.service.Due(); !due.IsZero() {
		p.pollWithin(max(due.Sub(p.w.k.Now()), 0))
	}
}

// pollSoon lets it ask within a poll interval: something changed behind it.
func (p *kmsPlugin) pollSoon() { p.pollWithin(0) }

// pollWithin lets it ask within a poll interval from a time on, if it would not sooner.
func (p *kmsPlugin) pollWithin(from time.Duration) {
	at := p.w.k.Now().Add(from + p.w.k.Between(0, plugin.DefaultPoll))
	if p.phase != running || p.poll != nil && !at.Before(p.polls) {
		return
	}
	p.poll.Stop()
	p.poll, p.polls = p.at(at, p.pollNow), at
}

// stirred is told that somebody stands still, or goes on: it may be the KMS that some plugins ask again and again.
func (w *world) stirred() {
	w.eachPlugin(func(p *kmsPlugin) {
		if p.poll != nil {
			p.pollSoon()
		}
	})
}

// eachPlugin does something to the plugins of all API servers.
func (c *cluster) eachPlugin(do func(*kmsPlugin)) {
	c.main.eachOwnPlugin(do)
	for _, f := range c.aggregated {
		f.eachOwnPlugin(do)
	}
}

func (w *world) eachOwnPlugin(do func(*kmsPlugin)) {
	for _, n := range w.nodes {
		for _, p := range n.plugins {
			do(p)
		}
	}
}

func (p *kmsPlugin) setLag(lag time.Duration) {
	p.lag = lag
	if p.running() {
		p.service.SetNoticeLag(lag)
		p.pollSoon()
	}
}

// inject puts a fault in force.
func (p *kmsPlugin) inject(f fault.Fault) error {
	if _, err := p.program.Inject(f); err != nil {
		return err
	}
	p.faultsChanged()
	return nil
}

// release ends the faults that match.
func (p *kmsPlugin) release(match func(fault.Active) bool) {
	p.program.Release(func(a fault.Active) bool { return !slices.Contains(p.own, a.ID) && match(a) })
	p.faultsChanged()
}

// faultsChanged lets calls go on whose hold is over, brings the socket into its state, and plans for the next fault that ends by
// itself.
func (p *kmsPlugin) faultsChanged() {
	if !p.running() {
		return
	}
	if next, ok := p.program.Expire(); ok {
		p.at(next, p.faultsChanged)
	}
	s := p.program.Socket()
	if s.Exit != nil {
		p.exited = true
		p.end(history.ProcessExited, "exited by the fault crash")
		return
	}
	if s.Cut != p.cut {
		p.cut = s.Cut
		p.abort("error reading from server: EOF")
	}
	for _, c := range slices.Clone(p.calls) {
		c.checkRelease()
	}
}

// abort breaks the connections of all calls under way.
func (p *kmsPlugin) abort(text string) {
	calls := p.calls
	p.calls = nil
	for _, c := range calls {
		c.lose(text)
	}
}
