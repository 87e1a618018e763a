package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/command"
)

const (
	// hookTimeout bounds a hook of a plugin under test.
	hookTimeout = 20 * time.Second
	// hookLog has the output of all hooks of a run.
	hookLog = "plugin-hooks.log"
)

// hook runs a hook of the plugin under test for some plugins. What one that failed has left behind is not known.
func (fs *faults) hook(ctx context.Context, field, text string, plugins []*cluster.Plugin) error {
	err := fs.runHook(ctx, field, text, plugins)
	if err != nil {
		fs.e.controlPlane.MarkDirty(cluster.TaintedKMS)
	}
	return err
}

// runHook runs a hook once for each different command that the placeholders of plugins make of it.
func (fs *faults) runHook(ctx context.Context, field, text string, plugins []*cluster.Plugin) error {
	t, err := command.Parse(text, undertest.PluginPlaceholders()...)
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	commands, err := fs.hookCommands(ctx, t, plugins)
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return cluster.Parallel(commands, func(words []string) error {
		output, err := command.RunHook(ctx, field, words, hookTimeout)
		return errors.Join(err, fs.logHook(field, words, output))
	})
}

// underTest are the plugins on a node, or on all, that meet a condition.
func (fs *faults) underTest(node string, meets func(*cluster.Plugin) bool) (plugins []*cluster.Plugin) {
	if node == scenario.NodeAll {
		node = ""
	}
	for _, n := range fs.e.nodes() {
		for _, g := range n.Plugins() {
			if g.Instance != nil && (node == "" || n.Name == node) && meets(g) {
				plugins = append(plugins, g)
			}
		}
	}
	return plugins
}

// hookCommands are the commands of a hook for some plugins, each once: a hook without placeholders is about all of them.
func (fs *faults) hookCommands(ctx context.Context, t command.Template, plugins []*cluster.Plugin) (commands [][]string, err error) {
	for _, g := range plugins {
		program, args := t.Fill(g.Instance)
		command := append([]string{program}, args...)
		if !slices.ContainsFunc(commands, func(other []string) bool { return slices.Equal(other, command) }) {
			commands = append(commands, command)
		}
	}
	for _, c := range commands {
		if c[0], err = fs.e.opts.Programs.Find(ctx, c[0]); err != nil {
			return nil, err
		}
	}
	return commands, nil
}

// logHook keeps what a hook wrote with the logs of the run.
func (fs *faults) logHook(field string, words []string, output []byte) error {
	f, err := os.OpenFile(filepath.Join(fs.e.logDir, hookLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("log of the hooks: %w", err)
	}
	_, err = fmt.Fprintf(f, "%s %s: %s\n%s", time.Now().UTC().Format(time.RFC3339Nano), field, command.Shown(words), output)
	return errors.Join(err, f.Close())
}

// remoteOfReal carries out what a scenario does to the remote KMS with the hooks of the plugin under test. A KMS that is away is not taken
// away again, and one that is there is not given back: hooks need not allow that.
func (fs *faults) remoteOfReal(ctx context.Context, a *scenario.KMS) error {
	field, text, away := "plugin.break", fs.e.opts.Plugin.Break, true
	switch a.Op {
	case scenario.KMSCut, scenario.KMSDeny, scenario.KMSDisable:
	case scenario.KMSRestore, scenario.KMSAllow, scenario.KMSEnable:
		field, text, away = "plugin.restore", fs.e.opts.Plugin.Restore, false
	default:
		return fmt.Errorf("op %s: no hook of a plugin under test can do it", a.Op)
	}
	plugins := fs.underTest(a.Node, func(g *cluster.Plugin) bool { return g.Broken.Load() != away })
	if away { // also if the hook fails, so that it is given back
		setBroken(plugins, true)
	}
	if err := fs.hook(ctx, field, text, plugins); err != nil {
		return err
	}
	setBroken(plugins, away)
	return nil
}

func setBroken(plugins []*cluster.Plugin, broken bool) {
	for _, g := range plugins {
		g.Broken.Store(broken)
	}
}

// rotateReal rotates the keys behind keyIDs.
func (fs *faults) rotateReal(ctx context.Context, keyIDs []string) error {
	return fs.hook(ctx, "plugin.rotate", fs.e.opts.Plugin.Rotate, fs.underTest("", func(g *cluster.Plugin) bool { return slices.Contains(keyIDs, g.KeyID) }))
}
