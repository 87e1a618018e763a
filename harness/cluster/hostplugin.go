package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
)

// HostPlugin is a plugin that is to run as a process of this machine.
type HostPlugin struct {
	APIServer   string // whose plugin, by the name of a further API server; empty: kube-apiserver's
	Node, KeyID string
	// Dir is of its sockets, Logs of its journal and its log.
	Dir, Logs string
	// Root is a folder of the control plane.
	Root    string
	KMS     *RemoteKMS
	Profile *Profile
}

func (p HostPlugin) String() string {
	name := p.Node + "/" + p.KeyID
	if p.APIServer != "" {
		name += " of " + p.APIServer
	}
	return name
}

// fileName is that of its journal and its log.
func (p HostPlugin) fileName() string {
	name := p.Node + "-" + p.KeyID
	if p.APIServer != "" {
		name = p.APIServer + "-" + name
	}
	return name
}

func (p HostPlugin) Journal() string { return JournalFile(p.Logs, p.fileName()) }

// On makes the plugin's place on this machine; it does not run yet.
func (p HostPlugin) On(m Machine) (*Plugin, error) {
	control, journal := filepath.Join(p.Dir, "ctl-"+p.KeyID+".sock"), p.Journal()
	g, err := NewPlugin(m.Host(), p.Node, p.KeyID, HostSocket(p.Dir, p.KeyID), control, journal)
	if err != nil {
		return nil, err
	}
	g.Identity.APIServer = p.APIServer
	if h, ok := m.(*Host); ok && !h.Programs.Plugin.IsZero() {
		return g, p.makeReal(h, g)
	}
	g.Unit = m.Unit(g.Identity, g.Healthy, func(ctx context.Context) (process.Spec, error) {
		path, err := m.Find(ctx, PluginProgram)
		args := PluginArgs(p.Node, p.KeyID, p.Dir, control, journal, p.KMS.Socket, p.KMS.Key(p.APIServer, p.KeyID))
		args = slices.Concat(args, []string{"--take-over"}, p.Profile.Args(), m.PluginArgs()) // it may be the successor of one that serves
		return process.Spec{Path: path, Args: args, LogFile: filepath.Join(p.Logs, history.RolePlugin+"-"+p.fileName()+".log")}, err
	})
	return g, nil
}

// Try starts the plugin for a check: on no node, so that no node which a scenario takes away takes a check with it.
func (p HostPlugin) Try(ctx context.Context, m Machine) (*Plugin, error) {
	p.Node = Preflight
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("try plugin %s: %w", p, err)
	}
	g, err := p.On(m)
	if err != nil {
		return nil, err
	}
	g.Beside = PlaceOn(m, "", p.Dir, nil, nil)
	if err := g.Start(ctx); err != nil {
		return nil, fmt.Errorf("try plugin %s: %w", p, err)
	}
	return g, nil
}

// StartPlugin starts a node's plugin, which is made first if there is none of its keyID.
func (n *Node) StartPlugin(ctx context.Context, p HostPlugin, m Machine) (*Plugin, error) {
	g := n.Plugin(p.KeyID)
	if g == nil {
		var err error
		if g, err = p.On(m); err != nil {
			return nil, err
		}
		n.AddPlugin(g)
	}
	if err := g.Start(ctx); err != nil {
		return nil, fmt.Errorf("start plugin %s: %w", p, err)
	}
	return g, nil
}
