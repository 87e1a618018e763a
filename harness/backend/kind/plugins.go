package kind

import (
	"context"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
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
