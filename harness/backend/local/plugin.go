package local

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
)

// plugin is one fake KMS v2 plugin: a process for a keyID on a node.
type plugin struct {
	*child
	node, keyID   string
	socket        string // that API server and reporter use
	controlSocket string
	journal       string
	control       *control
}

func (p *plane) newPlugin(node, keyID string) (_ *plugin, err error) {
	name := node + "-" + keyID
	g := &plugin{
		node: node, keyID: keyID, socket: p.socket(node, keyID),
		controlSocket: filepath.Join(p.nodeDir(node), "ctl-"+keyID+".sock"), journal: p.journalFile(name),
	}
	if g.control, err = newControl(g.controlSocket); err != nil {
		return nil, err
	}
	g.child = p.newChild(&child{
		identity: history.Process{Role: history.RolePlugin, Node: node, KeyID: keyID},
		ready:    g.control.Healthy,
		spec: func(ctx context.Context) (process.Spec, error) {
			path, err := p.programs.find(ctx, pluginProgram)
			return process.Spec{Path: path, Args: g.args(p), LogFile: filepath.Join(p.logs, "plugin-"+name+".log")}, err
		},
	})
	return g, nil
}

func (g *plugin) args(p *plane) []string {
	args := []string{
		"serve", "--listen=" + contract.SocketPath(p.nodeDir(g.node), g.keyID), "--node=" + g.node, "--key-id=" + g.keyID,
		"--remote=unix://" + p.kms.socket, "--key=" + remoteKey(g.keyID), "--control=unix://" + g.controlSocket, "--journal=" + g.journal,
	}
	return append(args, p.programs.pluginArgs...)
}

// close ends the plugin for good.
func (g *plugin) close(ctx context.Context) error {
	err := g.Stop(ctx)
	g.control.Close()
	if err != nil {
		return fmt.Errorf("stop plugin %s/%s: %w", g.node, g.keyID, err)
	}
	return nil
}
