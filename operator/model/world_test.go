package model_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

type world struct {
	laws     laws
	disturb  disturbances
	executor executor

	subject subject
	choose  choose
	began   time.Time
	now     time.Time

	spec    core.Wanted
	keys    map[uint64]*stored[revision.Key]
	used    map[uint64]bool // keyIDs that were ever given away
	configs map[int]revision.Config
	pruned  map[int]revision.Config
	plugins map[int]revision.PluginConfig
	desired core.Content   // of the pods
	remote  map[string]int // version of the key, by what chooses it

	nodes   map[string]*node
	joined  int
	objects map[string]object

	preflight *config.Plugin // that runs
	result    core.Preflight
	passed    map[string]bool

	migration core.Migration
	pending   []string // objects that it has not yet rewritten

	snapshot *core.Observed // that the plan rests upon
	looked   time.Time      // when
	versions map[uint64]int // of keys in that look
	plan     []core.Action

	steps []step
	did   map[string]int
	found *violation
}

// stored is an object of the API with its version: an update of another version fails.
type stored[T any] struct {
	value   T
	version int
}

// object is a secret in etcd.
type object struct {
	key uint64
	kek string
}

// node is one pod of the API server.
type node struct {
	since        time.Time
	coming       bool // it has joined, and its pod is not there yet
	up           bool
	unavailable  bool // nothing can be done on it, and it is not up
	loaded, disk int  // revisions
	plugins      map[uint64]*plugin
	reporter     []uint64
	reports      bool // its reporter runs
	report       map[uint64]core.Entry
	back         int // revisions that its pod was rolled back
}

// plugin that was started on a node.
type plugin struct {
	config config.Plugin
	alive  bool
	well   bool
	// sees is the version of the remote key that it has noticed, seed the one that its API server encrypts under.
	sees, seed int
	back       bool // to an older version than it has seen
	polled     time.Time
}

func newWorld(s subject, c choose) *world {
	w := &world{subject: s, choose: c, began: time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC), keys: map[uint64]*stored[revision.Key]{}, used: map[uint64]bool{},
		configs: map[int]revision.Config{}, pruned: map[int]revision.Config{}, plugins: map[int]revision.PluginConfig{}, remote: map[string]int{}, nodes: map[string]*node{}, objects: map[string]object{},
		passed: map[string]bool{}, did: map[string]int{}}
	w.laws, w.disturb, w.executor = laws{w}, disturbances{w}, executor{w}
	w.now, w.spec = w.began, core.Wanted{Wanted: config.Wanted{Type: config.Identity}}
	for range 1 + c(3) {
		w.join()
	}
	for _, name := range w.names() {
		w.pod(name, 0)
	}
	return w
}

func (w *world) names() []string { return slices.Sorted(maps.Keys(w.nodes)) }

// serving are the nodes whose API server answers.
func (w *world) serving() []string {
	return slices.DeleteFunc(w.names(), func(name string) bool { return !w.nodes[name].up })
}

// pick is one of several names; empty if there is none.
func (w *world) pick(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[w.choose(len(names))]
}

// step is a line of the story. Most stories are never told, so it is not written out before.
type step struct {
	at     time.Duration
	format string
	args   []any
}

func (w *world) note(format string, args ...any) {
	w.steps = append(w.steps, step{w.now.Sub(w.began), format, args})
}

func (s step) String() string { return fmt.Sprintf("+%v ", s.at) + fmt.Sprintf(s.format, s.args...) }

// violate keeps the first violation.
func (w *world) violate(id, format string, args ...any) {
	if w.found == nil {
		w.found = &violation{id, fmt.Sprintf(format, args...), w.steps}
	}
}

// kek is what a plugin reports as its kekID.
func (w *world) kek(p config.Plugin, version int) string {
	return fmt.Sprintf("%s/%d", keyHash(p), version)
}

func keyHash(p config.Plugin) string { return config.Wanted{Type: config.KMS, KMS: p}.KeyHash() }

func hash(p config.Plugin) string { return config.Wanted{Type: config.KMS, KMS: p}.Hash() }

// config is a revision as nodes have it: what is pruned stays in their files.
func (w *world) config(revisionNumber int) revision.Config {
	for _, all := range []map[int]revision.Config{w.configs, w.pruned} {
		if c, there := all[revisionNumber]; there {
			return c
		}
	}
	return revision.Config{Keys: []uint64{revision.Plain}}
}

func (w *world) isKMS(id uint64) bool {
	k, there := w.keys[id]
	return there && k.value.Type == config.KMS
}

func (w *world) allKeys() []revision.Key {
	var all []revision.Key
	for _, k := range sorted(w.keys) {
		all = append(all, k.value)
	}
	return all
}

// sorted are the values in the order of their keys: the model must be the same every time.
func sorted[K cmp.Ordered, V any](all map[K]V) []V {
	var out []V
	for _, k := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[k])
	}
	return out
}

func (w *world) observe() core.Observed {
	o := core.Observed{Wanted: w.spec, Preflight: w.result, Nodes: map[string]core.Node{}, Migration: w.migration, Desired: w.desired}
	o.Keys, o.Configs, o.PluginConfigs = w.allKeys(), sorted(w.configs), sorted(w.plugins)
	for name, n := range w.nodes {
		seen := core.Node{Up: n.up, Unavailable: n.unavailable, Since: n.since, Loaded: n.loaded, Plugins: map[uint64]config.Plugin{}, Report: maps.Clone(n.report)}
		for id, p := range n.plugins {
			if p.alive {
				seen.Plugins[id] = p.config
			}
		}
		o.Nodes[name] = seen
	}
	return o
}
