package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

// noted is a unit that notes what is done to it.
type noted struct {
	Unit
	name  string
	done  *[]string
	fails error
}

func (u noted) Start(context.Context) error { return u.note("start") }
func (u noted) Stop(context.Context) error  { return u.note("stop") }
func (u noted) Kill(context.Context) error  { return u.note("kill") }

func (u noted) note(verb string) error {
	*u.done = append(*u.done, verb+" "+u.name)
	return u.fails
}

func hostOf(t *testing.T) *Host {
	h := NewHost(nil, "")
	t.Cleanup(func() {
		if err := h.Supervisor.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// TestFronted: the fake plugin in front starts first, and ends only with the plugin for good.
func TestFronted(t *testing.T) {
	var done []string
	g, h, ctx := &Plugin{}, hostOf(t), t.Context()
	g.PutUnderTest(h, noted{name: "plugin", done: &done}, noted{name: "front", done: &done}, Instance{})
	if err := errors.Join(g.Start(ctx), g.Kill(ctx), g.Start(ctx), g.End(ctx)); err != nil {
		t.Fatal(err)
	}
	if want := []string{"start front", "start plugin", "kill plugin", "start front", "start plugin", "stop plugin", "stop front"}; !slices.Equal(done, want) {
		t.Errorf("done %q, want %q", done, want)
	}
}

// TestFirstStarts: plugins that share a folder start one after another until each has started once.
func TestFirstStarts(t *testing.T) {
	var done []string
	h, ctx := hostOf(t), t.Context()
	place := func(shared string, fails error) *Plugin {
		g := &Plugin{}
		g.PutUnderTest(h, noted{name: "plugin", done: &done, fails: fails}, noted{name: "front", done: &done}, Instance{undertest.PlaceShared: shared})
		return g
	}
	one, other, apart := place("/a", errors.New("no keys")), place("/a", nil), place("/b", nil)
	turn := one.Unit.(*Fronted).first
	if turn != other.Unit.(*Fronted).first || turn == apart.Unit.(*Fronted).first {
		t.Error("the plugins of one folder, and no others, wait for each other")
	}
	if err := one.Start(ctx); err == nil || one.Unit.(*Fronted).started.Load() {
		t.Errorf("a first start that failed: %v", err)
	}
	if err := other.Start(ctx); err != nil || !other.Unit.(*Fronted).started.Load() {
		t.Errorf("a first start: %v", err)
	}
	turn.Lock() // another starts for the first time
	defer turn.Unlock()
	if err := other.Start(ctx); err != nil {
		t.Error(err)
	}
}

// TestInstance: the folders of a plugin stay the same, and those of different API servers are apart.
func TestInstance(t *testing.T) {
	p := history.Process{Role: history.RolePlugin, Node: "cp-1", KeyID: "2"}
	one, err := NewInstance(p, "/run/n1", "/own", "/run")
	if err != nil {
		t.Fatal(err)
	}
	p.APIServer = "oauth-apiserver"
	other, _ := NewInstance(p, "/run/n1", "/own", "/run")
	if one["endpoint"] != "unix:///run/n1/real-2.sock" || one["shared"] != "/run/plugin-shared/2" || one["state"] != "/own/plugin-state/cp-1-2" ||
		other["shared"] != "/run/plugin-shared/oauth-apiserver-2" || other["state"] == one["state"] {
		t.Errorf("%v, %v", one, other)
	}
	if _, err := NewInstance(p, "/"+strings.Repeat("x", 120), "/own", "/run"); err == nil {
		t.Error("a path that no socket can have")
	}
}
