package cluster

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/internal/host"
)

// Machine is where the processes of a plane run.
type Machine interface {
	// Unit makes a place for a process. ready may be nil; spec is asked at every start.
	Unit(identity history.Process, ready process.Probe, spec func(context.Context) (process.Spec, error)) Unit
	// Find is where the program of a name is.
	Find(ctx context.Context, program string) (string, error)
	// Host is the machine as the harness's own clients see it.
	Host() host.Host
	// PluginArgs are further arguments of every fake plugin.
	PluginArgs() []string
}

// Listener passes changes of processes on.
type Listener struct {
	mu sync.Mutex
	to func(at time.Time, payload any)
}

// Listen has changes passed on to f; nil ends it.
func (l *Listener) Listen(f func(at time.Time, payload any)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = f
}

func (l *Listener) Record(at time.Time, p history.Process) {
	l.mu.Lock()
	to := l.to
	l.mu.Unlock()
	if to != nil {
		to(at, &p)
	}
}

// Host runs processes on this machine for a plane, and knows them by what the history calls them.
type Host struct {
	Programs   *Programs
	Supervisor *process.Supervisor

	Listener

	mu     sync.Mutex
	names  map[string]history.Process
	firsts map[string]*sync.Mutex // by folder: see Fronted
}

var _ Machine = (*Host)(nil)

// NewHost runs processes that end with the harness; runDir marks them.
func NewHost(programs *Programs, runDir string) *Host {
	h := &Host{Programs: programs, names: map[string]history.Process{}, firsts: map[string]*sync.Mutex{}}
	h.Supervisor = process.New(process.Options{RunDir: runDir, OnChange: h.changed})
	return h
}

// Register makes the changes of processes of a name known under an identity.
func (h *Host) Register(identity history.Process, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names[name] = identity
}

// Unit makes a place for a process. ready may be nil; spec is asked at every start.
func (h *Host) Unit(identity history.Process, ready process.Probe, spec func(context.Context) (process.Spec, error)) Unit {
	name := NameOf(identity)
	h.Register(identity, name)
	return &child{Unit: process.NewUnit(name, h.Supervisor), ready: ready, spec: spec}
}

func (h *Host) Find(ctx context.Context, program string) (string, error) {
	return h.Programs.Find(ctx, program)
}

func (h *Host) Host() host.Host { return host.Host{} }

func (h *Host) PluginArgs() []string { return h.Programs.PluginArgs }

// PlaceOn is a machine for a program that uses a server and keeps its files in a folder, with what it has in its environment and what it sees at another
// place.
func PlaceOn(m Machine, server, dir string, env []string, mounts []process.Mount) Place {
	return Place{Server: server, Dir: dir, SeenDir: dir, MetricsAddress: Nowhere, Unit: func(identity history.Process, command func(context.Context) (Command, error)) Unit {
		return m.Unit(identity, nil, func(ctx context.Context) (process.Spec, error) {
			c, err := command(ctx)
			if err != nil {
				return process.Spec{}, err
			}
			path, err := m.Find(ctx, c.Program)
			return process.Spec{Path: path, Args: c.Args, LogFile: c.LogFile, Env: env, Mounts: slices.Concat(mounts, c.Mounts)}, err
		})
	}}
}

// first is the lock for the first starts of plugins that share a folder.
func (h *Host) first(dir string) *sync.Mutex {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.firsts[dir] == nil {
		h.firsts[dir] = &sync.Mutex{}
	}
	return h.firsts[dir]
}

// changed is told by the supervisor what happens to processes.
func (h *Host) changed(c process.Change) {
	h.mu.Lock()
	identity, known := h.names[c.Name]
	h.mu.Unlock()
	if !known {
		return
	}
	identity.PID, identity.State = c.PID, c.HistoryState()
	if c.Exit != nil {
		identity.Detail, identity.Output = c.Exit.String(), c.Output
	}
	h.Record(c.Time, identity)
}

// KillAll ends every process at once: nothing of a plane that goes away is worth a clean stop.
func (h *Host) KillAll() {
	var all sync.WaitGroup
	for _, c := range h.Supervisor.Children() {
		all.Go(func() { _ = c.Kill() }) // what is left, the supervisor's Close stops
	}
	all.Wait()
}
