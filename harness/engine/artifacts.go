package engine

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/result"
)

// Artifacts says when an environment's artifacts are collected.
type Artifacts string

// Values of Artifacts.
const (
	ArtifactsOnFailure Artifacts = "on-failure" // of a scenario that did not pass
	ArtifactsAlways    Artifacts = "always"
	ArtifactsNever     Artifacts = "never"
)

// Limits of collecting. The longest part is kind's export: seconds for each node.
const (
	snapshotLimit = 10 * time.Second
	collectLimit  = 2 * time.Minute
)

// collecting is the artifacts of one run. What goes wrong with them is told and kept as a note; it is no part of any verdict.
type collecting struct {
	env      backend.Collector // nil: there are none
	dir      string
	when     Artifacts
	progress func(string)
	notes    []string
}

func (x Execution) collecting(env backend.Environment, dir string) *collecting {
	c := &collecting{dir: filepath.Join(dir, result.ArtifactsDir), when: x.Artifacts, progress: x.Progress}
	c.env, _ = env.(backend.Collector)
	return c
}

// atFailure takes a snapshot of the objects before healing changes them. Logs are not part of it: they only grow.
func (c *collecting) atFailure(ctx context.Context) {
	if c.env == nil || c.when == ArtifactsNever {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotLimit)
	defer cancel()
	c.note(c.env.Snapshot(ctx, filepath.Join(c.dir, "at-failure")))
}

// atEnd collects everything, if it is wanted, and returns the notes. After an interrupt nothing is collected: the user
// waits for the prompt.
func (c *collecting) atEnd(ctx context.Context, passed bool) []string {
	wanted := c.when == ArtifactsAlways || !passed && c.when != ArtifactsNever
	if c.env == nil || !wanted || ctx.Err() != nil {
		return c.notes
	}
	c.progress("collecting artifacts into " + c.dir)
	ctx, cancel := context.WithTimeout(ctx, collectLimit)
	defer cancel()
	c.note(c.env.Collect(ctx, c.dir, c.progress))
	return c.notes
}

func (c *collecting) note(err error) {
	if err == nil {
		return
	}
	note := "artifacts are not complete: " + strings.ReplaceAll(err.Error(), "\n", "; ")
	c.notes = append(c.notes, note)
	c.progress(note)
}
