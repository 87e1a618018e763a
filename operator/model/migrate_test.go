package model_test

import (
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/operator/core"
)

// begin lists the objects that there are. What is written from now on needs no migration: all API servers write with the new key.
func (x *executor) begin(a core.Attempt) {
	x.w.migration, x.w.pending = core.Migration{Attempt: a}, nil
	all := slices.Sorted(maps.Keys(x.w.objects))
	for i, name := range all {
		if !x.w.subject.skips(i, len(all)) {
			x.w.pending = append(x.w.pending, name)
		}
	}
	x.w.migration.Done = len(x.w.pending) == 0
}

// rewrite migrates the next object, if an API server can read it.
func (x *executor) rewrite() {
	if len(x.w.pending) == 0 {
		return
	}
	through := x.w.nodes[x.w.pick(x.w.serving())]
	name := x.w.pending[0]
	if through == nil || !x.w.reads(through, x.w.objects[name]) {
		return
	}
	x.w.write(name, through)
	x.w.pending = x.w.pending[1:]
	x.w.migration.Done = len(x.w.pending) == 0
}

// check ends the pre-flight check that runs. Image and address say what comes of it: see plugins in spec.go.
func (x *executor) check() {
	if x.w.preflight == nil {
		return
	}
	p := *x.w.preflight
	x.w.preflight = nil
	x.w.result = core.Preflight{Hash: hash(p), OK: !bad(p), At: x.w.now, Message: "permission denied"}
	if x.w.result.OK {
		x.w.result.KEK, x.w.result.Message = x.w.kek(p, x.w.remote[keyHash(p)]), ""
		x.w.passed[hash(p)] = true
	}
	x.w.note("pre-flight check of %s: %v", hash(p), x.w.result.OK)
}
