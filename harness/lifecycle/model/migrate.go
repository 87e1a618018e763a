package model

import (
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/harness/lifecycle/core"
)

// begin lists the objects that there are. What is written from now on needs no migration: all API servers write with the new key.
func (w *world) begin(a core.Attempt) {
	w.migration, w.pending = core.Migration{Attempt: a}, nil
	all := slices.Sorted(maps.Keys(w.objects))
	for i, name := range all {
		if !w.subject.Skips(i, len(all)) {
			w.pending = append(w.pending, name)
		}
	}
	w.migration.Done = len(w.pending) == 0
}

// rewrite migrates the next object, if an API server can read it.
func (w *world) rewrite() {
	if len(w.pending) == 0 {
		return
	}
	through := w.nodes[w.pick(w.serving())]
	name := w.pending[0]
	if through == nil || !w.reads(through, w.objects[name]) {
		return
	}
	w.write(name, through)
	w.pending = w.pending[1:]
	w.migration.Done = len(w.pending) == 0
}

// check ends the pre-flight check that runs. Image and address say what comes of it: see plugins in spec.go.
func (w *world) check() {
	if w.preflight == nil {
		return
	}
	p := *w.preflight
	w.preflight = nil
	w.result = core.Preflight{Hash: hash(p), OK: !bad(p), At: w.now, Message: "permission denied"}
	if w.result.OK {
		w.result.KEK, w.result.Message = w.kek(p, w.remote[keyHash(p)]), ""
		w.passed[hash(p)] = true
	}
	w.note("pre-flight check of %s: %v", hash(p), w.result.OK)
}
