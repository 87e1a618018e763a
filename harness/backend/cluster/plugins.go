package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// slot is a container for a plugin: containers of a pod are fixed, and the keyIDs of scenarios are not.
type slot struct {
	*unit
	plugin *live.Plugin // that is in it, or was the last; nil: none was
	taken  int          // by so many plugins, so far
}

// free reports whether none of the node's plugins is in the slot.
func (s *slot) free(n *live.Node) bool {
	return s.plugin == nil || n.Plugin(s.plugin.KeyID) != s.plugin
}

// freeSlot is a slot without a plugin of the node.
func freeSlot(n *live.Node, slots []*slot) (*slot, error) {
	i := slices.IndexFunc(slots, func(s *slot) bool { return s.free(n) })
	if i < 0 {
		return nil, fmt.Errorf("the pod of node %s has %d containers for plugins, and each is taken", n.Name, len(slots))
	}
	return slots[i], nil
}

// AddPlugin implements live.ControlPlane.
func (p *controlPlane) AddPlugin(ctx context.Context, n *live.Node, keyID string) (*live.Plugin, error) {
	g := n.Plugin(keyID)
	if g == nil {
		var err error
		if g, err = p.newPlugin(ctx, n, keyID); err != nil {
			return nil, fmt.Errorf("plugin %s/%s: %w", n.Name, keyID, err)
		}
	}
	return g, g.Start(ctx)
}

// newPlugin makes the plugin of a keyID in a container of its node's pod. Its files have names that no plugin before it had.
func (p *controlPlane) newPlugin(ctx context.Context, n *live.Node, keyID string) (*live.Plugin, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.names[n.Name]
	if one == nil {
		return nil, errors.New("its node has no pod")
	}
	s, err := freeSlot(n, one.plugins)
	if err != nil {
		return nil, err
	}
	if s.plugin != nil { // what the container's journal says until now is about that one
		if err := errors.Join(s.plugin.Stop(ctx), one.sync(ctx), p.journals.Poll()); err != nil {
			return nil, err
		}
	}
	s.taken++
	name := fmt.Sprintf("%s.%d", s.unit.unit, s.taken)
	control, err := one.socket(volumePlugins + "/" + name + ".ctl")
	if err != nil {
		return nil, err
	}
	g, err := live.NewPlugin(n.Name, keyID, "", control, one.file(volumePlugins+"/"+name+".jsonl"))
	if err != nil {
		return nil, err
	}
	remote := "tcp://" + p.hub.ip + ":" + portKMS
	g.Unit = &program{unit: s.unit, ready: g.Healthy, command: func(context.Context) ([]string, error) {
		return slices.Concat([]string{inImage(live.PluginProgram), "serve", "--listen=" + contract.SocketPath(contract.SocketDir, keyID), "--node=" + n.Name,
			"--key-id=" + keyID, "--remote=" + remote, "--key=" + p.kms.Key("", keyID), "--control=unix://" + inPod(volumePlugins, name+".ctl"),
			"--journal=" + inPod(volumePlugins, name+".jsonl"), "--socket-mode=0660"}, p.profile.Args(), p.args), nil
	}}
	s.is.Store(&g.Identity)
	s.plugin = g
	n.AddPlugin(g)
	return g, nil
}
