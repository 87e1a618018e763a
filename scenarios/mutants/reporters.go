package mutants

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/kmsharness/kmsharness/altsvc"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/options"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// Reporters of the virtual control plane: kms-health-reporter with one thing changed, at each start anew.

const reporterProgram = "kms-health-reporter"

// replacing is this project's programs with another one in the place of one of them.
func replacing(name string, main virtual.Main) virtual.Options {
	all := virtual.Programs()
	all[name] = main
	return virtual.Options{Programs: all}
}

// starting is a program that is about to run. A C configures it.
type starting[C any] struct {
	host.Host
	args      []string
	configure []C
}

// startedBy is a program that is changed before it runs, at each start anew.
func startedBy[C any](name string, main func(context.Context, host.Host, []string, io.Writer, io.Writer, ...C) int, change func(*starting[C])) func() virtual.Options {
	return func() virtual.Options {
		return replacing(name, func(ctx context.Context, h host.Host, args []string, stdout, stderr io.Writer) int {
			s := &starting[C]{Host: h, args: args}
			change(s)
			return main(ctx, s.Host, s.args, stdout, stderr, s.configure...)
		})
	}
}

// startingReporter is a reporter that is about to run.
type startingReporter struct {
	host.Host
	options.Options
	changes []reporter.Change
	ends    []func()                    // called at its end
	besides []func(ctx context.Context) // run beside it
}

// reporting is reporters that are changed before they run.
func reporting(change func(*startingReporter) error) func() virtual.Options {
	return func() virtual.Options {
		return replacing(reporterProgram, func(ctx context.Context, h host.Host, args []string, stdout, stderr io.Writer) int {
			o, errs := options.Parse(args, stdout)
			r := &startingReporter{Host: h, Options: o}
			if len(errs) == 0 {
				errs = append(errs, change(r))
			}
			if err := errors.Join(errs...); err != nil {
				return entry.Exit(stderr, reporterProgram, entry.ExitUsage, err)
			}
			for _, end := range r.ends {
				defer end()
			}
			var running sync.WaitGroup
			defer running.Wait()
			ctx, end := context.WithCancel(ctx)
			defer end()
			for _, run := range r.besides {
				running.Go(func() { run(ctx) })
			}
			log := reporter.NewLogger(stderr, o.LogFormat, o.Verbosity)
			return entry.Exit(stderr, reporterProgram, entry.ExitFailed, reporter.Run(ctx, r.Host, r.Options, log, r.changes...))
		})
	}
}

// publisher is a further one, which ends with the reporter.
func (r *startingReporter) publisher(alternatives *altsvc.Options) (*publish.Publisher, error) {
	config, err := reporter.Connection(r.Host, r.Options)
	if err != nil {
		return nil, err
	}
	p, err := publish.New(config, alternatives, r.Operator, r.Form, r.Node, r.Clock().Now)
	if err == nil {
		r.ends = append(r.ends, p.Close)
	}
	return p, err
}

// looping is reporters whose loop is changed.
func looping(change func(r *startingReporter, l *reporter.Loop)) func() virtual.Options {
	return reporting(func(r *startingReporter) error {
		r.changes = append(r.changes, func(l *reporter.Loop) { change(r, l) })
		return nil
	})
}

type (
	step  = func(core.Config, core.State, core.Event) (core.State, core.Action)
	apply func(ctx context.Context, write core.Action) error
)

// Apply implements reporter.Publisher.
func (a apply) Apply(ctx context.Context, write core.Action) error { return a(ctx, write) }

// prober is a reporter.Prober.
type prober func(ctx context.Context) []core.Result

// All implements reporter.Prober.
func (p prober) All(ctx context.Context) []core.Result { return p(ctx) }

// stepping is a reporter with a core of its own.
func stepping(make func() step) func() virtual.Options {
	return looping(func(_ *startingReporter, l *reporter.Loop) { l.Step = make() })
}

// tuned is a reporter that is configured wrongly.
func tuned(change func(*contract.Timing)) func() virtual.Options {
	return looping(func(_ *startingReporter, l *reporter.Loop) { change(&l.Config.Timing) })
}

// misreading is a core that takes the answers of its plugins for others.
func misreading(change func(*core.Event)) step {
	return func(c core.Config, s core.State, ev core.Event) (core.State, core.Action) {
		if ev.Kind == core.Probed {
			ev.Results = slices.Clone(ev.Results)
			change(&ev)
		}
		return core.Step(c, s, ev)
	}
}

// misread is a reporter with such a core.
func misread(change func(*core.Event)) func() virtual.Options {
	return stepping(func() step { return misreading(change) })
}

// Misreporting is a reporter that writes other entries than its core decided on.
func Misreporting(change func(*core.Action)) func() virtual.Options {
	return stepping(func() step {
		return func(c core.Config, s core.State, ev core.Event) (core.State, core.Action) {
			s, a := core.Step(c, s, ev)
			if a.Kind == core.Write {
				a.Report.Entries = slices.Clone(a.Report.Entries)
				change(&a)
			}
			return s, a
		}
	})
}

// publishing is a reporter that handles its writes in another way.
func publishing(make func(next apply) apply) func() virtual.Options {
	return looping(func(_ *startingReporter, l *reporter.Loop) { l.Publisher = make(l.Publisher.Apply) })
}

// sending is a reporter whose applies are changed on their way out.
func sending(change func(*outgoing)) func() virtual.Options {
	return reporting(func(r *startingReporter) error {
		changeRequests(&r.Host, patched(change))
		return nil
	})
}
