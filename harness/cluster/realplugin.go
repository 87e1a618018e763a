package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/server"
	"github.com/kmsharness/kmsharness/fakeplugin/upstream"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/command"
	"github.com/kmsharness/kmsharness/internal/host"
)

// CommandOf is the command of an instance of a plugin under test.
func CommandOf(p undertest.Plugin, i Instance) (program string, args []string, err error) {
	t, err := command.Parse(p.Command, undertest.PluginPlaceholders()...)
	if err != nil {
		return "", nil, err // validated before
	}
	program, args = t.Fill(i)
	return program, args, nil
}

// Fronted is the Unit of a plugin under test: actions act on its process, and never on the fake plugin in front of it, which keeps the
// journal and carries out faults.
type Fronted struct {
	Unit
	// Front is the unit of the fake plugin.
	Front Unit
	// first is held during the first start. Plugins that share a folder have the same: the first of them makes what all of them use.
	first   *sync.Mutex
	started atomic.Bool
}

var _ Unit = (*Fronted)(nil)

// Start implements Unit. First starts come one after another, because plugins may share a folder that the first of them makes. The
// front starts before the plugin, so that calls that come too early are in its journal.
func (f *Fronted) Start(ctx context.Context) error {
	if err := f.Front.Start(ctx); err != nil {
		return err
	}
	if f.started.Load() {
		return f.Unit.Start(ctx)
	}
	f.first.Lock()
	defer f.first.Unlock()
	err := f.Unit.Start(ctx)
	if err == nil {
		f.started.Store(true)
	}
	return err
}

// PutUnderTest makes g a plugin under test, with the fake plugin of a unit in front of it. The values are those of this machine.
func (g *Plugin) PutUnderTest(h *Host, plugin, front Unit, values Instance) {
	g.Unit, g.Instance = &Fronted{Unit: plugin, Front: front, first: h.first(values[undertest.PlaceShared])}, values
}

// End stops the plugin, and the fake one in front of it if there is one.
func (g *Plugin) End(ctx context.Context) error {
	err := g.Stop(ctx)
	if f, ok := g.Unit.(*Fronted); ok {
		err = errors.Join(err, f.Front.Stop(ctx))
	}
	return err
}

// Answers is nil if the plugin's control API answers, and so does the plugin under test behind it if there is one.
func (g *Plugin) Answers(ctx context.Context) error {
	if err := g.Healthy(ctx); err != nil || g.Instance == nil {
		return err
	}
	return g.Instance.Answers(ctx)
}

// makeReal gives g the process of the plugin under test, and the fake plugin in front of it.
func (p HostPlugin) makeReal(h *Host, g *Plugin) error {
	values, err := NewInstance(g.Identity, p.Dir, p.Root, p.Root)
	if err != nil {
		return err
	}
	log := filepath.Join(p.Logs, history.RolePlugin+"-"+p.fileName())
	front := &child{Unit: process.NewUnit("front of "+NameOf(g.Identity), h.Supervisor), ready: g.Healthy, spec: func(ctx context.Context) (process.Spec, error) {
		path, err := h.Programs.Find(ctx, PluginProgram)
		args := append(FrontArgs(p.Node, p.KeyID, p.Dir, g.ControlSocket, g.Journal, values), h.Programs.PluginArgs...)
		return process.Spec{Path: path, Args: args, LogFile: log + "-front.log"}, err
	}}
	plugin := &child{Unit: process.NewUnit(NameOf(g.Identity), h.Supervisor), ready: values.Answers, spec: func(ctx context.Context) (process.Spec, error) {
		program, args, err := CommandOf(h.Programs.Plugin, values)
		if err != nil {
			return process.Spec{}, err
		}
		path, err := h.Programs.Find(ctx, program)
		return process.Spec{Path: path, Args: args, LogFile: log + ".log"}, errors.Join(err, values.MakeFolders())
	}}
	h.Register(g.Identity, NameOf(g.Identity))
	g.PutUnderTest(h, plugin, front, values)
	return nil
}

// Instance is a plugin under test on a node: the values of its placeholders.
type Instance map[string]string

// PluginState and PluginShared are the folders below which the plugins under test have their own.
const PluginState, PluginShared = "plugin-state", "plugin-shared"

// NewInstance gives the plugin of an identity its socket in a folder, and its other folders: one below a folder of its own, and one below a
// folder of all nodes.
func NewInstance(p history.Process, sockets, own, all string) (Instance, error) {
	at, err := endpoint.ParseUnix("unix://" + filepath.Join(sockets, "real-"+p.KeyID+".sock"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", NameOf(p), err)
	}
	state, shared := p.Node+"-"+p.KeyID, p.KeyID
	if p.APIServer != "" {
		state, shared = p.APIServer+"-"+state, p.APIServer+"-"+shared
	}
	return Instance{
		undertest.PlaceSocket: at.Address, undertest.PlaceEndpoint: at.String(), undertest.PlaceNode: p.Node, undertest.PlaceKeyID: p.KeyID,
		undertest.PlaceState: filepath.Join(own, PluginState, state), undertest.PlaceShared: filepath.Join(all, PluginShared, shared),
	}, nil
}

// MakeFolders makes the folders of an instance whose paths are those of this machine. No other user can enter them.
func (i Instance) MakeFolders() error {
	var errs []error
	for _, dir := range []string{filepath.Dir(i[undertest.PlaceSocket]), i[undertest.PlaceState], i[undertest.PlaceShared]} {
		errs = append(errs, os.MkdirAll(dir, 0o700))
	}
	return errors.Join(errs...)
}

// probeTimeout bounds one question whether a plugin answers.
const probeTimeout = 2 * time.Second

// Answers is nil if an instance whose paths are those of this machine answers Status, whatever the answer.
func (i Instance) Answers(ctx context.Context) error {
	at := i[undertest.PlaceEndpoint]
	to, err := endpoint.ParseUnix(at)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err = upstream.New(host.Host{}, to).Notice(ctx)
	if errors.Is(err, server.ErrGone) || ctx.Err() != nil {
		return fmt.Errorf("it does not answer Status at %s: %w", at, err)
	}
	if s, ok := status.FromError(err); ok && s.Code() != codes.OK {
		return nil // it is up, and cannot use its KMS
	}
	return err
}
