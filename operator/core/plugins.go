package core

import (
	"cmp"
	"slices"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// plugIn makes the newest plugin configuration the needed one. It reports whether it was so before.
func (d *decision) plugIn() bool {
	if needed := d.needed(); !slices.Equal(needed, d.plugins.Plugins) {
		d.at(StagePlugins, "the plugins change")
		d.plan.do(CreatePluginConfig{revision.PluginConfig{Revision: d.plugins.Revision + 1, Plugins: needed}})
		return false
	}
	return true
}

// desire has all pods get the newest revisions. A plugin whose credentials are missing is not started, and one that was stays: nothing else waits for that.
func (d *decision) desire() {
	c := Content{Revision: d.cur.Revision}
	for _, p := range d.plugins.Plugins {
		if d.missing(p.Config) {
			before, there := d.Desired.Of(p.KeyID)
			if !there {
				continue
			}
			p.Config = before
		} else {
			d.follow(p)
		}
		c.Plugins = append(c.Plugins, p)
	}
	slices.SortFunc(c.Plugins, func(a, b revision.Plugin) int { return cmp.Compare(b.KeyID, a.KeyID) })
	if !c.Equal(d.Desired) {
		d.plan.do(Desire{c})
	}
	for _, name := range d.present() {
		for _, id := range d.Nodes[name].all() {
			if !d.plugins.Has(id) {
				d.at(StagePlugins, "plugin %d ends on %s", id, name)
			}
		}
	}
}

// follow says of a plugin that it cannot start, or does not run everywhere as it is configured.
func (d *decision) follow(p revision.Plugin) {
	if waits := d.waits(p); len(waits) > 0 {
		d.at(StagePlugins, "plugin %d cannot start on %s", p.KeyID, list(waits))
	}
	for _, name := range d.present() {
		if runs, there := d.Nodes[name].Plugins[p.KeyID]; there && runs != p.Config {
			d.at(StagePlugins, "plugin %d is started anew on %s", p.KeyID, name)
		}
	}
}

// needed are the plugins that any API server needs, the writer first: those of the newest configuration, of what a node still has
// loaded, and of the key that comes next. As long as a node does not say what it has loaded, none goes away.
func (d *decision) needed() []revision.Plugin {
	ids := slices.Clone(d.cur.Keys)
	for _, name := range d.names() {
		n := d.Nodes[name]
		if !n.serves() {
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
	rank := func(p revision.Plugin) int {
		if i := slices.Index(d.cur.Keys, p.KeyID); i >= 0 {
			return i
		}
		return len(d.cur.Keys)
	}
	slices.SortStableFunc(out, func(a, b revision.Plugin) int { return rank(a) - rank(b) })
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
