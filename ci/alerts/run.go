package alerts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// defaultInterval of evaluations, as in promtool.
const defaultInterval = time.Minute

// run is every test of a file; the error has a line for each expectation that is not met.
func run(path string) error {
	f, err := readFile(path)
	if err != nil {
		return err
	}
	var errs []error
	for _, t := range f.Tests {
		if err := f.one(t); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", path, t.Name, err))
		}
	}
	return errors.Join(errs...)
}

// one loads the series, evaluates the rules as time goes by, and looks at the alerts that fire.
func (f file) one(t test) (err error) {
	suite, err := promqltest.NewLazyLoader(t.load(), promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, suite.Close()) }()
	p := parser.NewParser(parser.Options{})
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(suite.QueryEngine(), suite.Storage()), AppendableV2: suite.Storage(), Context: context.Background(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: slog.New(slog.DiscardHandler), Parser: p, GroupLoader: loader{p},
	})
	groups, errs := manager.LoadGroups(time.Duration(f.EvaluationInterval), labels.EmptyLabels(), "", nil, false, f.RuleFiles...)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return t.evaluate(suite, groups, time.Duration(f.EvaluationInterval))
}

// load is the series in the language of promqltest.
func (t test) load() string {
	var b strings.Builder
	fmt.Fprintf(&b, "load %s\n", t.Interval)
	for _, s := range t.InputSeries {
		fmt.Fprintf(&b, "  %s %s\n", s.Series, s.Values)
	}
	return b.String()
}

func (t test) evaluate(suite *promqltest.LazyLoader, groups map[string]*rules.Group, every time.Duration) error {
	for _, r := range alerting(groups) {
		r.SetRestored(true)
	}
	tests := slices.SortedStableFunc(slices.Values(t.Alerts), func(a, b alertTest) int { return int(a.EvalTime - b.EvalTime) })
	var errs []error
	for at := time.Duration(0); len(tests) > 0; at += every {
		suite.WithSamplesTill(time.Unix(0, 0).Add(at), func(err error) {
			errs = append(errs, err)
			for _, g := range groups {
				g.Eval(suite.Context(), time.Unix(0, 0).Add(at).UTC())
				for _, r := range g.Rules() {
					errs = append(errs, r.LastError())
				}
			}
		})
		for len(tests) > 0 && time.Duration(tests[0].EvalTime) < at+every {
			errs = append(errs, tests[0].compare(groups))
			tests = tests[1:]
		}
	}
	return errors.Join(errs...)
}

func alerting(groups map[string]*rules.Group) (out []*rules.AlertingRule) {
	for _, g := range groups {
		for _, r := range g.Rules() {
			if a, ok := r.(*rules.AlertingRule); ok {
				out = append(out, a)
			}
		}
	}
	return out
}
