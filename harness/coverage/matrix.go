package coverage

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// Entry is what the survey found of one scenario.
type Entry struct {
	Scenario *scenario.Scenario
	// Backends that can run it.
	Backends []string
	// Status of its simulation; Took is the virtual time of it, about what the local backend needs, and Judged the invariants
	// that were judged at least once. Both are empty for what the simulator cannot run.
	Status result.Status
	Took   time.Duration
	Judged []string
}

// Options of a survey.
type Options struct {
	Jobs int // simulations at the same time; at least 1
}

// Run surveys scenarios, and keeps their order.
func Run(ctx context.Context, all []*scenario.Scenario, o Options) (entries []Entry, err error) {
	backends, err := everyBackend()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kmsharness-survey-")
	if err != nil {
		return nil, fmt.Errorf("survey: %w", err)
	}
	defer func() {
		if gone := os.RemoveAll(dir); err == nil {
			err = gone
		}
	}()
	entries = make([]Entry, len(all))
	var wg sync.WaitGroup
	todo := make(chan int)
	for range max(o.Jobs, 1) {
		wg.Go(func() {
			simulator := sim.New(sim.Options{})
			for i := range todo {
				entries[i] = Entry{Scenario: all[i], Backends: able(backends, all[i])}
				entries[i].simulate(ctx, simulator, dir)
			}
		})
	}
	for i := range all {
		todo <- i
	}
	close(todo)
	wg.Wait()
	return entries, ctx.Err()
}

// everyBackend starts nothing.
func everyBackend() (all []choose.Backend, err error) {
	for _, name := range choose.Names() {
		b, err := choose.New(name, choose.Options{})
		if err != nil {
			return nil, fmt.Errorf("survey: %w", err)
		}
		all = append(all, b)
	}
	return all, nil
}

func able(backends []choose.Backend, s *scenario.Scenario) (names []string) {
	for _, b := range backends {
		if len(b.Unsupported(s)) == 0 {
			names = append(names, b.Name())
		}
	}
	return names
}

func (e *Entry) simulate(ctx context.Context, b *sim.Backend, dir string) {
	r := engine.Execute(ctx, b, e.Scenario, engine.Execution{Out: dir, Artifacts: engine.ArtifactsNever, Options: engine.Options{
		Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: 1}})
	e.Status = r.Status
	v, err := verdictOf(r.Dir)
	if err != nil {
		return // it was not judged, and the status says so
	}
	e.Took = v.Duration
	for _, i := range v.Invariants {
		if i.Judged > 0 {
			e.Judged = append(e.Judged, i.ID)
		}
	}
}

func verdictOf(dir string) (v check.Verdict, err error) {
	text, err := os.ReadFile(filepath.Join(dir, result.VerdictJSON))
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	return v, err
}

// Faults are the kinds of faults that a scenario injects and the other harm that it does, in the order of their names.
func (e Entry) Faults() (kinds []string) {
	for _, a := range e.Scenario.Actions() {
		if kind := scenario.Harm(a); kind != "" {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// Statement is something that the sources promise, in this project's words.
type Statement struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}
