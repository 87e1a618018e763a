package core

import (
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// plugIn keeps plugins and reporters as the newest plugin configuration has them, and says whether that is as it should be.
func (d *decision) plugIn() bool {
	if needed := d.needed(); !slices.Equal(needed, d.plugins.Plugins) {
		d.at(StagePlugins, "the plugins change")
		d.plan.do(CreatePluginConfig{revision.PluginConfig{Revision: d.plugins.Revision + 1, Plugins: needed}})
		return false
	}
	for _, name := range d.present() {
		d.startOn(name)
	}
	for _, name := range d.present() {
		d.reportOn(name)
	}
	for _, name := range d.present() {
		d.stopOn(name)
	}
	return true
}

// needed are the plugins that any API server needs, the writer first: those of the newest configuration, of what a node still has
// loaded, and of the key that comes next. As long as a node does not say what it has loaded, none goes away.
func (d *decision) needed() []revision.Plugin {
	ids := slices.Clone(d.cur.Keys)
	for _, name := range d.names() {
		n := d.Nodes[name]
		if !n.Up {
			for _, p := range d.plugins.Plugins {
				ids = append(ids, p.KeyID)
			}
			continue
		}
		for _, c := range d.Configs {
			if c.Revision == n.Loaded {
				ids = append(ids, c.Keys...)
			}
		}
	}
	ids = append(ids, d.top.ID)
	var out []revision.Plugin
	for i, id := range ids {
		k, there := revision.Find(d.Keys, id)
		if there && k.Type == config.KMS && slices.Index(ids, id) == i {
			out = append(out, revision.Plugin{KeyID: id, Config: d.configured(k)})
		}
	}
	slices.SortStableFunc(out, func(a, b revision.Plugin) int { return d.rank(a.KeyID) - d.rank(b.KeyID) })
	return out
}

// configured is the plugin of a key as it is to run, with the content that its credentials have now. A plugin of the configuration that is wanted
// gets other content when it has passed the check with it; one whose credentials are missing keeps what it has.
func (d *decision) configured(k revision.Key) config.Plugin {
	p := k.Plugin.WithContent(d.Credentials)
	old, there := d.plugins.Of(k.ID)
	if !there || old.WithoutContent() != k.Plugin || old == p {
		return p
	}
	if p.Content == "" || k.Plugin == d.Wanted.KMS && !d.checked() {
		return old
	}
	return p
}

// rank puts the writer first and the next one last.
func (d *decision) rank(id uint64) int {
	if i := slices.Index(d.cur.Keys, id); i >= 0 {
		return i
	}
	return len(d.cur.Keys)
}

// startOn starts plugins that do not run, or run with another configuration. Without credentials none is started, and nothing else
// waits for that. A plugin that runs is started anew on one node after another, and on none while one that was started before it cannot run.
func (d *decision) startOn(name string) {
	n := d.Nodes[name]
	var start []revision.Plugin
	for _, p := range d.plugins.Plugins {
		runs, there := n.Plugins[p.KeyID]
		if there && runs == p.Config || d.missing(p.Config) {
			continue
		}
		if waits := d.waits(p); len(waits) > 0 && (there || n.Waiting[p.KeyID].Config == p.Config) {
			d.at(StagePlugins, "plugin %d cannot start on %s", p.KeyID, list(waits))
			continue
		}
		if there {
			if d.replaced == "" {
				d.replaced = name
			}
			if d.at(StagePlugins, "plugin %d is started anew on %s", p.KeyID, d.replaced); d.replaced != name {
				continue
			}
		}
		start = append(start, p)
	}
	if len(start) > 0 {
		d.plan.do(StartPlugins{Node: name, Plugins: start})
	}
}

// waits are the nodes on which a plugin was started with its present configuration and cannot run.
func (d *decision) waits(p revision.Plugin) []string {
	return slices.DeleteFunc(d.present(), func(name string) bool {
		w, there := d.Nodes[name].Waiting[p.KeyID]
		return !there || w.Config != p.Config
	})
}

// missing says whether a plugin has no credentials. Those of plugins that the administrator no longer asks for are not looked at.
func (d *decision) missing(p config.Plugin) bool {
	return len(d.Wanted.Missing) > 0 && p.WithoutContent() == d.Wanted.KMS
}

// reportOn gives the reporter the sockets of the configuration. A new one it gets when the plugin listens: plugins first, reporters
// last. One that goes away it loses at once, before the plugin ends.
func (d *decision) reportOn(name string) {
	n := d.Nodes[name]
	var ids []uint64
	for _, p := range d.plugins.Plugins {
		if _, runs := n.Plugins[p.KeyID]; runs || slices.Contains(n.Reporter, p.KeyID) {
			ids = append(ids, p.KeyID)
		}
	}
	if !slices.Equal(ids, n.Reporter) {
		d.plan.do(Report{Node: name, Plugins: ids})
	}
}

// stopOn ends plugins that nobody needs and no reporter asks. As long as one is there, the change of plugins is not over.
func (d *decision) stopOn(name string) {
	n := d.Nodes[name]
	has := slices.AppendSeq(slices.Collect(maps.Keys(n.Plugins)), maps.Keys(n.Waiting))
	slices.Sort(has)
	var stop []uint64
	for _, id := range slices.Compact(has) { // one may run and wait for its start with other settings
		if d.plugins.Has(id) {
			continue
		}
		d.at(StagePlugins, "plugin %d ends on %s", id, name)
		if !slices.Contains(n.Reporter, id) {
			stop = append(stop, id)
		}
	}
	if len(stop) > 0 {
		d.plan.do(StopPlugins{Node: name, Plugins: stop})
	}
}
