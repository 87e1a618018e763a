package kmsplugin

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/conformance/plugin"
)

// Subject is a mutant as the suite gets it; the zero Mutant is the correct plugin. The program is the words that start Main, quoted as in a
// command template.
func (m Mutant) Subject(program string) plugin.Subject {
	hook := program + " hook --state {state} "
	return plugin.Subject{
		Command:   program + " serve --listen {endpoint} --state {state} --address {address} --mutation '" + m.Name + "'",
		Addresses: []string{"kms-a.example.com", "kms-b.example.com"},
		Hooks: plugin.Hooks{
			Break: hook + "{mode}", Slow: hook + plugin.ModeSlow, Restore: hook + "restore", Rotate: hook + "rotate", Count: hook + "count",
		},
	}
}

// Timing is as short as it can be for programs that make their mistakes at once.
func Timing() plugin.Timing {
	t := plugin.DefaultTiming()
	t.Call, t.Start, t.Stop, t.Watch, t.Notice, t.Load = 2*time.Second, 10*time.Second, 3*time.Second, time.Second, 3*time.Second, 6*time.Second
	return t
}

// Try runs the suite on a mutant; with only, no checks but the one that must catch it.
func (m Mutant) Try(ctx context.Context, program string, only bool) (*conformance.Report, error) {
	timing := Timing()
	o := plugin.Options{Timing: &timing}
	if only {
		o.Focus = regexp.MustCompile("^" + regexp.QuoteMeta(m.Caught) + "$")
	}
	return plugin.Run(ctx, m.Subject(program), o)
}

// Outcome is what the whole suite found in a mutant.
type Outcome struct {
	Mutant
	// Survived says why the mutant does not count as caught; empty if it does.
	Survived string
	Took     time.Duration
}

// Judge runs the whole suite on a mutant. It counts as caught if the intended check failed, and no check but those that the mutant lists.
func (m Mutant) Judge(ctx context.Context, program string) Outcome {
	began := time.Now()
	report, err := m.Try(ctx, program, false)
	o := Outcome{Mutant: m, Took: time.Since(began)}
	if err != nil {
		o.Survived = err.Error()
		return o
	}
	caught, alarms := false, []string(nil)
	for _, r := range report.With(conformance.Failed) {
		caught = caught || r.ID == m.Caught
		if r.ID != m.Caught && !slices.Contains(m.Also, r.ID) {
			alarms = append(alarms, "false alarm: "+r.ID+": "+(&conformance.Finding{Evidence: *r.Evidence}).Error())
		}
	}
	o.Survived = strings.Join(alarms, "\n  ")
	if !caught {
		o.Survived = m.Caught + " did not fail"
	}
	return o
}

// JudgeAll judges mutants, some side by side, and returns the outcomes in their order. Each is passed to progress when it is known. Some mistakes
// need many calls in a bounded time, and some checks a prompt answer: a mutant that does not count as caught is judged once more, alone.
func JudgeAll(ctx context.Context, all []Mutant, program string, progress func(Outcome)) []Outcome {
	outcomes := make([]Outcome, len(all))
	var group errgroup.Group
	group.SetLimit(sideBySide)
	var mu sync.Mutex
	for i, m := range all {
		group.Go(func() error {
			o := m.Judge(ctx, program)
			mu.Lock()
			defer mu.Unlock()
			outcomes[i] = o
			if o.Survived == "" {
				progress(o)
			}
			return nil
		})
	}
	_ = group.Wait() // no error: outcomes have them
	for i, m := range all {
		if outcomes[i].Survived != "" && ctx.Err() == nil {
			outcomes[i] = m.Judge(ctx, program)
			progress(outcomes[i])
		}
	}
	return outcomes
}

// sideBySide bounds the mutants that run at a time. Most wait for deadlines.
const sideBySide = 6
