package model

import (
	"time"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

type Subject struct {
	Decide func(core.Observed, core.Options, time.Time) core.Plan
	// Serve is what a pod of an API server gets that was rolled back by a number of revisions.
	Serve func(o core.Observed, back int) (revision.Config, revision.PluginConfig)
	// SocketName is what the socket of a key's plugin is called after.
	SocketName func(keyID uint64) string
	// Skips says whether a migration leaves the i-th of n objects out.
	Skips func(i, n int) bool
}

func Good() Subject {
	return Subject{Decide: core.Decide, Serve: core.Serve, SocketName: revision.SocketName, Skips: func(int, int) bool { return false }}
}

// Choose picks one of n, from 0.
type Choose func(n int) int

// Options of an operator in the model: those of OpenShift, with little kept, so that pruning matters.
func Options() core.Options {
	o := core.DefaultOptions()
	o.Keep = 1
	return o
}

type Violation struct {
	// ID is one of those in Laws.
	ID string
	// What happened, in words.
	What string
	// At is when, since the world began; Steps are what led there.
	At    time.Duration
	Steps []string
}

func (v *Violation) Error() string { return v.ID + ": " + v.What }

// Law is something that holds in every world.
type Law struct{ ID, Statement string }

func Laws() []Law {
	return []Law{
		{"READABLE", "every API server, also one that starts now from what it has on disk, can read every object"},
		{"NEWEST-READS", "the newest revisions can read every object, with keys that still exist"},
		{"ONE-AT-A-TIME", "a key is made only when everything is under the one before, and its plugins are freshly reported healthy"},
		{"AS-WANTED", "a key is made only for what a valid configuration asks for at that time"},
		{"PREFLIGHT", "a KMS key is made only for a configuration that passed the pre-flight check"},
		{"KEY-ID-ONCE", "a keyID is given away once"},
		{"TEARDOWN", "no reporter is left with the socket of a plugin that was taken away"},
		{"SOCKETS", "no two plugins of a node listen at the same socket"},
		{"CONVERGES", "when nothing happens any more the operator comes to rest, with what is wanted in force on every node"},
		{"NOTHING-LEFT", "at rest every object is under the newest key and its KEK, and nothing runs that is not needed"},
	}
}
