package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/kmsharness/kmsharness/contract"
	controlclient "github.com/kmsharness/kmsharness/fakeplugin/control/client"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/host"
)

// PluginProgram serves plugins and the remote KMS.
const PluginProgram = "fake-kms-plugin"

// Plugin is one KMS v2 plugin for a keyID on a node: a fake one, or one under test with a fake one in front of it.
type Plugin struct {
	Target
	Node, KeyID string
	// Socket that API server and reporter use, the control API's socket and the journal, on this machine.
	Socket, ControlSocket, Journal string
	User                           int // of its process

	Control  *Control
	Instance Instance    // of a plugin under test; nil: it is a fake one
	Beside   Place       // of a plugin that is tried: where a program runs that checks it
	Broken   atomic.Bool // of a plugin under test: a hook has taken its KMS away
}

// NewPlugin makes the plugin at its sockets; its Unit is the backend's to set.
func NewPlugin(h host.Host, node, keyID, socket, controlSocket, journal string) (*Plugin, error) {
	c, err := newControl(h, controlSocket)
	if err != nil {
		return nil, fmt.Errorf("plugin %s/%s: %w", node, keyID, err)
	}
	return &Plugin{
		Target: Target{Identity: history.Process{Role: history.RolePlugin, Node: node, KeyID: keyID}},
		Node:   node, KeyID: keyID, Socket: socket, ControlSocket: controlSocket, Journal: journal, User: os.Geteuid(), Control: c,
	}, nil
}

// Healthy is nil if the plugin's control API answers.
func (g *Plugin) Healthy(ctx context.Context) error { return g.Control.Healthy(ctx) }

// Clear ends every fault and lag.
func (g *Plugin) Clear(ctx context.Context) error {
	if err := g.Control.releaseAll(ctx); err != nil {
		return err
	}
	return g.Control.SetNoticeLag(ctx, 0)
}

// PluginArgs are the arguments of PluginProgram for a plugin whose folders it sees as sockets, control and logs, with the
// remote KMS at a socket; key is the plugin's key there.
func PluginArgs(node, keyID, sockets, controlSocket, journal, kms, key string) []string {
	return serveArgs(node, keyID, sockets, controlSocket, journal, "--remote=unix://"+kms, "--key="+key)
}

// FrontArgs are those of PluginProgram in front of a plugin under test, whose paths are as PluginProgram sees them.
func FrontArgs(node, keyID, sockets, controlSocket, journal string, behind Instance) []string {
	return serveArgs(node, keyID, sockets, controlSocket, journal, "--upstream="+behind[undertest.PlaceEndpoint])
}

func serveArgs(node, keyID, sockets, controlSocket, journal string, keys ...string) []string {
	return slices.Concat([]string{"serve", "--listen=" + contract.SocketPath(sockets, keyID), "--node=" + node, "--key-id=" + keyID},
		keys, []string{"--control=unix://" + controlSocket, "--journal=" + journal})
}

// HostSocket is the path of a plugin's socket below a folder of this machine.
func HostSocket(dir, keyID string) string {
	return strings.TrimPrefix(contract.SocketPath(dir, keyID), "unix://")
}

// EndPlugins ends all plugins of a node for good.
func (n *Node) EndPlugins(ctx context.Context) error {
	var errs []error
	for _, g := range n.Plugins() {
		errs = append(errs, g.Close(ctx))
	}
	return errors.Join(errs...)
}

// Close drops the harness's connections to the node's API server and plugins.
func (n *Node) Close() {
	n.Admin.Close()
	if n.Direct != nil {
		n.Direct.Close()
	}
	for _, g := range n.Plugins() {
		g.Control.Close()
	}
}

// Forget drops the harness's connections to a plugin that its pod has taken along.
func (g *Plugin) Forget() { g.Control.Close() }

// Close ends the plugin for good.
func (g *Plugin) Close(ctx context.Context) error {
	err := g.End(ctx)
	g.Control.Close()
	if err != nil {
		return fmt.Errorf("stop plugin %s/%s: %w", g.Node, g.KeyID, err)
	}
	return nil
}

// ForgetJournals empties the journals whose names match a pattern, but for those of plugins that live: a scenario that starts a plugin reads its journal from
// the beginning, and what was called in the scenario before is no call of this one.
func ForgetJournals(pattern string, living []string) error {
	all, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range all {
		if !slices.Contains(living, file) {
			errs = append(errs, os.Truncate(file, 0))
		}
	}
	return errors.Join(errs...)
}

// Profile is the provider that the plugins of a plane stand for. The zero value is none.
type Profile struct{ name atomic.Pointer[string] }

// Args are the arguments of a plugin that starts.
func (p *Profile) Args() []string {
	if name := p.name.Load(); name != nil && *name != "" {
		return []string{"--profile=" + *name}
	}
	return nil
}

// Become makes the plugins that run stand for a provider, and those that start from now on. To their API servers a change looks
// like a rotation, which they notice with their next Status.
func (p *Profile) Become(ctx context.Context, name string, nodes *Nodes) error {
	if before := p.name.Swap(&name); name == "" && (before == nil || *before == "") {
		return nil
	}
	var errs []error
	for _, n := range nodes.List() {
		for _, g := range n.Plugins() {
			if !g.Status().Running() {
				continue
			}
			if err := g.Control.SetProfile(ctx, name); err != nil {
				errs = append(errs, fmt.Errorf("plugin %s/%s: profile %q: %w", n.Name, g.KeyID, name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// Control is the control API of a fake plugin.
type Control struct{ *controlclient.Client }

func newControl(h host.Host, socket string) (*Control, error) {
	c, err := controlclient.New(h, "unix://"+socket, "")
	if err != nil {
		return nil, fmt.Errorf("control API of a plugin: %w", err)
	}
	return &Control{c}, nil
}

// Inject puts a fault in force. The plugin knows its parameters, since it may be a fault of another module.
func (c *Control) Inject(ctx context.Context, a *scenario.Inject) error {
	_, err := c.Client.Inject(ctx, a.Fault, a.FaultParams())
	return err
}

// Release ends the faults of a name that strike at one of the methods; an empty name means any, no methods mean all.
func (c *Control) Release(ctx context.Context, name string, methods []fault.Method) error {
	switch {
	case len(methods) > 0:
	case name == "":
		return c.releaseAll(ctx)
	default:
		_, err := c.ReleaseName(ctx, name)
		return err
	}
	faults, err := c.Faults(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range faults {
		if (name == "" || f.Fault.Name == name) && f.Fault.Strikes(methods) {
			errs = append(errs, c.Client.Release(ctx, f.ID))
		}
	}
	return errors.Join(errs...)
}

func (c *Control) releaseAll(ctx context.Context) error {
	_, err := c.ReleaseAll(ctx)
	return err
}
