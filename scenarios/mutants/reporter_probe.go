package mutants

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/probe"
)

// probing is reporters that ask wrongly, or take an answer for something else.
func probing() []Mutant {
	return []Mutant{
		{
			Name: "probes-in-turn", Scenario: "plugins-hang-together", Caught: []string{"CADENCE"}, Virtual: looping(oneAfterAnother),
			Mistake: "a loop over the plugins in place of one goroutine for each: the deadlines of those that hang add up",
		},
		{
			Name: "no-probe-deadline", Scenario: "plugin-hangs", Caught: []string{"CADENCE", "steps[1].expect"}, Virtual: probingFor(time.Hour),
			Mistake: "a Status call with the context of the process: one plugin that hangs silences its node",
		},
		{
			Name: "long-probe-deadline", Scenario: "plugin-hangs", Caught: []string{"CADENCE", "steps[1].expect"}, Virtual: probingFor(4 * time.Second),
			Mistake: "a probe deadline of four intervals, copied from a client that reads whole lists",
		},
		{
			Name: "sockets-found-by-scan", Scenario: "unlisted-plugin", Caught: []string{"TRUTHFUL-PROBE"}, Virtual: looping(scanSockets),
			Mistake: "a glob over the folder of the sockets: a plugin of another revision, which no API server uses, is reported and makes the rollup worse",
		},
		{
			Name: "one-failure-cancels-all", Scenario: "plugin-hangs-beside-another", Caught: []string{"TRUTHFUL-PROBE"}, Virtual: misread(cancelAll),
			Mistake: "an errgroup with a context: the first plugin that fails cancels the probes of all others",
		},
		{
			Name: "answer-of-before", Scenario: "plugin-unhealthy", Caught: []string{"TRUTHFUL-PROBE"}, Virtual: stepping(answersOfBefore),
			Mistake: "a cache that is filled by one loop and published by another: what is written as of now was answered a tick ago",
		},
		{
			Name: "checked-when-written", Scenario: "plugin-hangs-beside-another", Caught: []string{"TRUTHFUL-PROBE"},
			Mistake: "time.Now() where the report is put together: lastChecked is the time of the write and not of that probe",
			Virtual: misread(func(ev *core.Event) {
				for i := range ev.Results {
					ev.Results[i].Started = ev.Now
				}
			}),
		},
		{
			Name: "never-unhealthy", Scenario: "failures-nobody-waits-for", Caught: []string{"TRUTHFUL-PROBE", "FALSE-HEALTHY", "DETECTION"},
			Mistake: "a probe that only looks at the error of the RPC: an answer that says not ok passes for ok",
			Virtual: misread(answered(func(a *core.Answer) { a.Healthz = "ok" })),
		},
		{
			Name: "contains-ok", Scenario: "observability-metrics", Caught: []string{"TRUTHFUL-PROBE", "steps[2].expect"},
			Mistake: `strings.Contains(healthz, "ok"): a plugin whose token has expired is healthy, and so is one that is not ok`,
			Virtual: misread(answered(func(a *core.Answer) {
				if strings.Contains(a.Healthz, "ok") {
					a.Healthz = "ok"
				}
			})),
		},
		{
			Name: "key-id-unchecked", Scenario: "plugin-unusable-answers", Caught: []string{"TRUTHFUL-PROBE"},
			Mistake: "healthz is all that is looked at: a plugin without a key_id, under which nobody can encrypt, is healthy",
			Virtual: Misreporting(func(a *core.Action) {
				for i, e := range a.Report.Entries {
					if strings.HasPrefix(e.Detail, "key_id is empty") {
						a.Report.Entries[i].Status, a.Report.Entries[i].Detail = contract.StatusHealthy, ""
					}
				}
			}),
		},
		{
			Name: "version-unchecked", Scenario: "plugin-unusable-answers", Caught: []string{"TRUTHFUL-PROBE"},
			Mistake: "the version is not looked at: a plugin that kube-apiserver refuses is healthy",
			Virtual: misread(answered(func(a *core.Answer) { a.Version = "v2" })),
		},
		{
			Name: "nil-is-no-news", Scenario: "every-failure-is-visible-conditions", Caught: []string{"TRUTHFUL-PROBE"}, Virtual: stepping(nilIsNoNews),
			Mistake: "a response that is nil passes for the one before, since there was no error",
		},
		{
			Name: "code-left-out", Scenario: "plugin-hangs", Caught: []string{"steps[2].holds"},
			Mistake: "status.Convert(err).Message() in place of the code and the text: nobody can tell a deadline from a refusal",
			Virtual: Misreporting(func(a *core.Action) {
				for i, e := range a.Report.Entries {
					if _, words, ok := strings.Cut(e.Detail, ": "); ok && e.Status == contract.StatusError {
						a.Report.Entries[i].Detail = words
					}
				}
			}),
		},
		{
			Name: "key-of-before-it-failed", Contract: scenario.ContractConditions, Scenario: "plugin-hangs", Caught: []string{"FORMAT"},
			Mistake: "the last key_id is kept for a plugin that does not answer, as the typed form demands it: whoever waits for a rotation believes it",
			Virtual: Misreporting(func(a *core.Action) {
				for i, e := range a.Report.Entries {
					a.Report.Entries[i].KEKID = cmp.Or(e.KEKID, a.LastKEKID[e.KeyID])
				}
			}),
		},
		{
			Name: "failed-plugin-left-out", Scenario: "plugin-hangs-beside-another", Caught: []string{"TRUTHFUL-PROBE", "steps[1].expect"},
			Mistake: "continue after a failed probe: the plugin that fails is the one that the report does not mention",
			Virtual: Misreporting(func(a *core.Action) {
				a.Report.Entries = slices.DeleteFunc(a.Report.Entries, func(e contract.Entry) bool { return e.Status == contract.StatusError })
			}),
		},
		{
			Name: "sorted-by-key-id", Scenario: "plugin-hangs-beside-another", Caught: []string{"TRUTHFUL-PROBE"},
			Mistake: "results collected in a map and sorted for a stable message: the write key no longer comes first",
			Virtual: Misreporting(func(a *core.Action) {
				slices.SortFunc(a.Report.Entries, func(a, b contract.Entry) int { return strings.Compare(a.KeyID, b.KeyID) })
			}),
		},
		{
			Name: "ids-swapped", Scenario: "steady-state", Caught: []string{"TRUTHFUL-PROBE"},
			Mistake: "key_id of the plugin taken for keyID, and the number of the socket for kekID: both are called key ID somewhere",
			Virtual: Misreporting(func(a *core.Action) {
				for i, e := range a.Report.Entries {
					a.Report.Entries[i].KeyID, a.Report.Entries[i].KEKID = cmp.Or(e.KEKID, "none"), e.KeyID
				}
			}),
		},
	}
}

// answered changes every answer.
func answered(change func(*core.Answer)) func(*core.Event) {
	return func(ev *core.Event) {
		for i, r := range ev.Results {
			if r.Answer != nil && *r.Answer != (core.Answer{}) {
				a := *r.Answer
				change(&a)
				ev.Results[i].Answer = &a
			}
		}
	}
}

func cancelAll(ev *core.Event) {
	if !slices.ContainsFunc(ev.Results, func(r core.Result) bool { return r.Failure != nil }) {
		return
	}
	for i := range ev.Results {
		if ev.Results[i].Failure == nil {
			ev.Results[i].Answer, ev.Results[i].Failure = nil, &core.Failure{Code: "Canceled", Text: "context canceled"}
		}
	}
}

func answersOfBefore() step {
	var last []core.Result
	return misreading(func(ev *core.Event) {
		now := slices.Clone(ev.Results)
		for i := range ev.Results {
			if len(last) == len(ev.Results) {
				ev.Results[i].Answer, ev.Results[i].Failure = last[i].Answer, last[i].Failure
			}
		}
		last = now
	})
}

func nilIsNoNews() step {
	last := map[string]*core.Answer{}
	return misreading(func(ev *core.Event) {
		for i, r := range ev.Results {
			if r.Answer != nil && *r.Answer == (core.Answer{}) && last[r.KeyID] != nil {
				ev.Results[i].Answer = last[r.KeyID]
			}
			last[r.KeyID] = ev.Results[i].Answer
		}
	})
}

// probingFor is a reporter with another deadline of its probes.
func probingFor(timeout time.Duration) func() virtual.Options {
	return looping(func(r *startingReporter, l *reporter.Loop) { l.Prober = probe.New(r.Host, r.Plugins, timeout) })
}

// oneAfterAnother is a reporter that does not probe its plugins at once.
func oneAfterAnother(r *startingReporter, l *reporter.Loop) {
	l.Prober = prober(func(ctx context.Context) (all []core.Result) {
		for _, p := range r.Plugins {
			all = append(all, probe.New(r.Host, []probe.Plugin{p}, r.Timing.ProbeTimeout).All(ctx)...)
		}
		return all
	})
}

// scanSockets is a reporter that probes every plugin whose socket it finds, after those of its flags.
func scanSockets(r *startingReporter, l *reporter.Loop) {
	l.Prober = prober(func(ctx context.Context) []core.Result {
		all := slices.Clone(r.Plugins)
		found, _ := filepath.Glob(filepath.Join(filepath.Dir(r.Plugins[0].Socket), "kms-*.sock")) // the pattern is valid
		for _, socket := range found {
			p, err := probe.PluginOf("unix://" + socket)
			if err == nil && !slices.ContainsFunc(all, func(o probe.Plugin) bool { return o.KeyID == p.KeyID }) {
				all = append(all, p)
			}
		}
		return probe.New(r.Host, all, r.Timing.ProbeTimeout).All(ctx)
	})
}
