package model_test

import (
	"fmt"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
	"github.com/kmsharness/kmsharness/scenarios/mutants/decisions"
)

type subject struct {
	decisions.Operator
	// socketName is what the socket of a key's plugin is called after.
	socketName func(keyID uint64) string
	// skips says whether a migration leaves the i-th of n objects out.
	skips func(i, n int) bool
	// reportersEndLast: the installer takes a reporter its sockets after their plugins have ended.
	reportersEndLast bool
}

func good() subject {
	return subject{Operator: decisions.Good(), socketName: revision.SocketName, skips: func(int, int) bool { return false }}
}

// choose picks one of n, from 0.
type choose func(n int) int

// options of an operator in the model: those of OpenShift, with little kept, so that pruning matters.
func options() core.Options {
	o := core.DefaultOptions()
	o.Keep = 1
	return o
}

// violation of a law: what happened, and the steps that led there.
type violation struct {
	id, what string
	steps    []step
}

func (v *violation) String() string {
	text := fmt.Sprintf("%s: %s\n%s", v.id, v.what, statements()[v.id])
	for _, s := range v.steps[max(0, len(v.steps)-40):] {
		text += "\n" + s.String()
	}
	return text
}

// statements are what holds in every world, by the id of the law.
func statements() map[string]string {
	return map[string]string{
		"READABLE":      "every API server, also one that starts now from what it has on disk, can read every object",
		"NEWEST-READS":  "the newest revisions can read every object, with keys that still exist",
		"ONE-AT-A-TIME": "a key is made only when everything is under the one before, and its plugins are freshly reported healthy",
		"AS-WANTED":     "a key is made only for what a valid configuration asks for at that time",
		"PREFLIGHT":     "a KMS key is made only for a configuration that passed the pre-flight check",
		"KEY-ID-ONCE":   "a keyID is given away once",
		"TEARDOWN":      "no reporter is left with the socket of a plugin that was taken away",
		"SOCKETS":       "no two plugins of a node listen at the same socket",
		"CONVERGES":     "when nothing happens any more the operator comes to rest, with what is wanted in force on every node",
		"NOTHING-LEFT":  "at rest every object is under the newest key and its KEK, and nothing runs that is not needed",
	}
}
