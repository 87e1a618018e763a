package live

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/internal/command"
)

// RealPlugin is a KMS v2 plugin under test. The zero value is none: the fake plugin serves.
type RealPlugin struct {
	// Command is the template of the plugin's command. Break, Restore and Rotate are templates of commands that take its KMS away, give it
	// back, and rotate its key; empty: there is no such command. See PluginPlaceholders.
	Command, Break, Restore, Rotate string
	// Image has the program of Command, and runs it in a container; empty: Command runs on this machine.
	Image string
	// Name and Version are shown in reports; an empty Name is the program of Command.
	Name, Version string
}

// Placeholders of a plugin's command and its hooks.
const (
	placeSocket   = "socket"   // path of the plugin's own socket
	placeEndpoint = "endpoint" // the same as unix:///PATH
	placeNode     = "node"
	placeKeyID    = "keyID"
	placeState    = "state"  // folder of this plugin instance, which stays for all its processes
	placeShared   = "shared" // folder of the plugins of one keyID on all nodes
)

// PluginPlaceholders are what the command template of a plugin and of its hooks may contain.
func PluginPlaceholders() []string {
	return []string{placeSocket, placeEndpoint, placeNode, placeKeyID, placeState, placeShared}
}

// IsZero reports whether there is no plugin under test.
func (p RealPlugin) IsZero() bool { return p == RealPlugin{} }

func (p RealPlugin) Implementation() history.Implementation {
	if p.IsZero() {
		return history.Implementation{}
	}
	name := p.Name
	if name == "" {
		name = nameOf(p.Command)
	}
	return history.Implementation{Name: name, Version: p.Version}
}

// Has reports whether a template has one of some placeholders.
func Has(text string, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(text, "{"+name+"}") })
}

// hooks are the flags of the hooks, with their templates.
func (p RealPlugin) hooks() [][2]string {
	return [][2]string{{flagBreak, p.Break}, {flagRestore, p.Restore}, {flagRotate, p.Rotate}}
}

// Flags of a plugin under test.
const (
	flagPlugin  = "--plugin-command"
	flagImage   = "--plugin-image"
	flagBreak   = "--plugin-break"
	flagRestore = "--plugin-restore"
	flagRotate  = "--plugin-rotate"
)

// Flags are the command-line flags that ask for the same again, unquoted.
func (p RealPlugin) Flags() [][2]string {
	return slices.Concat([][2]string{{flagPlugin, p.Command}, {flagImage, p.Image}}, p.hooks(), [][2]string{{"--plugin-name", p.Name}, {"--plugin-version", p.Version}})
}

func (p RealPlugin) validate() error {
	if p.Command == "" && !p.IsZero() {
		return errors.New("--plugin-image, --plugin-break, --plugin-restore, --plugin-rotate, --plugin-name and --plugin-version: expected with --plugin-command only")
	}
	if p.IsZero() {
		return nil
	}
	for _, t := range append(p.hooks(), [2]string{flagPlugin, p.Command}) {
		if t[1] == "" {
			continue
		}
		if _, err := command.Parse(t[1], PluginPlaceholders()...); err != nil {
			return fmt.Errorf("%s: %w", t[0], err)
		}
	}
	if !Has(p.Command, placeSocket, placeEndpoint) {
		return fmt.Errorf("%s %q: expected {%s}, the path of the socket that the plugin is to listen on, or {%s}, the same as unix:///PATH", flagPlugin, p.Command, placeSocket, placeEndpoint)
	}
	if program := programOf(p.Command); p.Image != "" && !strings.HasPrefix(program, "/") {
		return fmt.Errorf("%s: program %q: expected an absolute path in the image of %s", flagPlugin, program, flagImage)
	}
	if (p.Break == "") != (p.Restore == "") {
		return fmt.Errorf("%s and %s: expected both or none of them", flagBreak, flagRestore)
	}
	return nil
}

// checkPrograms returns an error if a program that runs on this machine cannot be found.
func (p RealPlugin) checkPrograms() error {
	templates := p.hooks()
	if p.Image == "" {
		templates = append(templates, [2]string{flagPlugin, p.Command})
	}
	for _, t := range templates {
		if err := checkProgram(t[0], t[1], "", Findable); err != nil {
			return err
		}
	}
	return nil
}

// CommandOf is the command of an instance of the plugin.
func (p RealPlugin) CommandOf(i Instance) (program string, args []string, err error) {
	t, err := command.Parse(p.Command, PluginPlaceholders()...)
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
	g.Unit, g.instance = &Fronted{Unit: plugin, Front: front, first: h.first(values[placeShared])}, values
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
	if err := g.Healthy(ctx); err != nil || g.instance == nil {
		return err
	}
	return g.instance.Answers(ctx)
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
		program, args, err := h.Programs.Plugin.CommandOf(values)
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
