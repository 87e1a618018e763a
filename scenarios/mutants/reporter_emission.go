package mutants

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/reporter/core"
)

// emission is reporters that write at the wrong time, or too old news.
func emission() []Mutant {
	return []Mutant{
		{
			Name: "only-news", Scenario: "steady-state", Caught: []string{"CADENCE"}, Subject: publishing(onlyNews),
			Mistake: "a publisher that compares the entries with those of its last write, times apart, and spares the API server the rest: thrift that takes the meaning from lastChecked",
		},
		{
			Name: "queue-and-flush", Scenario: "apiserver-down", Caught: []string{"FRESH-ONLY"}, Subject: publishing(queueAndFlush),
			Mistake: "a work queue between probing and writing, so that nothing gets lost: after an outage the results of all of it are written, the oldest first",
		},
		{
			Name: "older-after-newer", Scenario: "apiserver-down", Caught: []string{"MONOTONIC"}, Subject: publishing(olderAfterNewer),
			Mistake: "a failed write that is retried beside the ticks: it succeeds after the next one and puts the older result over the newer",
		},
		{
			Name: "queue-behind-a-cut", Scenario: "reporter-cut-off", Caught: []string{"FRESH-ONLY"}, Subject: publishing(queueAndFlush),
			Mistake: "the same behind a network that loses packets: one request may have been under way, and arrive late; the others were only kept",
		},
		{
			Name: "retry-until-written", Scenario: "apiserver-down", Caught: []string{"FRESH-ONLY"}, Subject: publishing(retryUntilWritten),
			Mistake: "a publisher that loops until its write succeeds: no tick happens meanwhile, and what it writes at last is from before the outage",
		},
		{
			Name: "deadline-after-the-handshake", Scenario: "service-network-faults", Caught: []string{"FRESH-ONLY"}, Subject: publishing(patientWithHandshakes),
			Mistake: "a deadline for each request and another, of 4 s, for a connection: when handshakes are slow, what is written is older than an interval and both deadlines",
		},
		{
			Name: "silent-after-a-refusal", Scenario: "typed-list-full", Contract: scenario.ContractHealthReports, Caught: []string{"CADENCE"}, Subject: publishing(silentAfterARefusal),
			Mistake: "a refused write taken for a mistake of its own that no repetition mends: the list has room again, and the reporter does not look",
		},
		{
			Name: "credential-read-once", Scenario: "reporter-credential-expires", Caught: []string{"CADENCE"}, Subject: hook(sim.TestHooks{KeepCredential: true}),
			Mistake: "a client that was given the certificate's text at its start: the file is renewed in time, and nobody reads it until somebody restarts the reporter",
		},
		{
			Name: "token-read-once", Scenario: "service-token-rotates", Caught: []string{"CADENCE"}, Subject: hook(sim.TestHooks{KeepCredential: true}),
			Mistake: "the token of the in-cluster configuration as text, in place of its file: a kubelet rotates it in time, and the first one is used for ever",
		},
		{
			Name: "every-third-interval", Scenario: "steady-state", Caught: []string{"CADENCE"}, Subject: tuned(func(t *contract.Timing) { t.Interval *= 3 }),
			Mistake: "a reporter that knows when a report is stale, and writes shortly before: no gap is longer than the bound of a single one",
		},
		{
			Name: "every-third-left-out", Scenario: "steady-state", Caught: []string{"CADENCE"}, Subject: publishing(leavesOutEveryThird),
			Mistake: "a rate limit of the client that is a little lower than the interval: no gap is longer than CADENCE allows between two writes, and every third report is missing",
		},
		{
			Name: "last-checked-of-every-third", Scenario: "steady-state", Caught: []string{"MONOTONIC"}, Subject: publishing(keepsLastChecked),
			Mistake: "a lastChecked that is read from a cache which is refreshed every third tick: it stands still, and is never too old",
		},
		{
			Name: "slow-ticks", Scenario: "steady-state", Caught: []string{"CADENCE"}, Subject: tuned(func(t *contract.Timing) { t.Interval *= 4 }),
			Mistake: "a reporter that backs off to four intervals while nothing changes: staleness is derived from the interval that it was given",
		},
		{
			Name: "backs-off-from-failures", Scenario: "failure-stage-long", Caught: []string{"CADENCE"}, Subject: stepping(backsOff),
			Mistake: "exponential back-off on repeated failures, as for a client that wants something: the reports of a plugin that is down for long grow stale, and its recovery is seen late",
		},
		{
			Name: "fast-ticks", Scenario: "steady-state", Caught: []string{"CADENCE"}, Subject: tuned(func(t *contract.Timing) { t.Interval /= 3 }),
			Mistake: "a reporter that probes and writes at the rate of its probe deadline, three times per interval: the API servers pay for it",
		},
		{
			Name: "no-jitter", Scenario: "steady-state", Caught: []string{"CADENCE"},
			Subject: hook(sim.TestHooks{Jitter: func(time.Duration) time.Duration { return 0 }}),
			Mistake: "a plain ticker: reporters that were started together write together for as long as they live, all to the same object",
		},
		{
			Name: "catches-up", Scenario: "reporter-paused", Caught: []string{"CADENCE"}, Subject: stepping(catchesUp),
			Mistake: "a schedule that counts from the last due time instead of from now: after a pause every tick that was missed is made up for, in a burst",
		},
	}
}

func onlyNews(_ string, next sim.Publish) sim.Publish {
	var last []contract.Entry
	return func(write core.Action, done func(error)) {
		news := slices.Clone(write.Report.Entries)
		for i := range news {
			news[i].LastChecked = time.Time{}
		}
		if slices.Equal(news, last) {
			done(nil)
			return
		}
		next(write, func(err error) {
			if err == nil {
				last = news
			}
			done(err)
		})
	}
}

func leavesOutEveryThird(_ string, next sim.Publish) sim.Publish {
	n := 0
	return func(write core.Action, done func(error)) {
		if n++; n%3 == 0 {
			done(nil)
			return
		}
		next(write, done)
	}
}

func keepsLastChecked(_ string, next sim.Publish) sim.Publish {
	n, last := 0, time.Time{}
	return func(write core.Action, done func(error)) {
		if n++; n%3 == 1 {
			last = write.Report.Entries[0].LastChecked
		}
		write.Report.Entries = slices.Clone(write.Report.Entries)
		for i := range write.Report.Entries {
			write.Report.Entries[i].LastChecked = last
		}
		next(write, done)
	}
}

func silentAfterARefusal(_ string, next sim.Publish) sim.Publish {
	refused := false
	return func(write core.Action, done func(error)) {
		if refused {
			done(nil)
			return
		}
		next(write, func(err error) {
			refused = err != nil
			done(err)
		})
	}
}

func queueAndFlush(_ string, next sim.Publish) sim.Publish {
	var queue []core.Action
	return func(write core.Action, done func(error)) {
		queue = append(queue, write)
		var flush func(error)
		flush = func(err error) {
			if err != nil || len(queue) == 0 {
				done(err)
				return
			}
			oldest := queue[0]
			oldest.Until, oldest.Next = write.Until, write.Next
			next(oldest, func(err error) {
				if err == nil {
					queue = queue[1:]
				}
				flush(err)
			})
		}
		flush(nil)
	}
}

// patientWithHandshakes gives a write four seconds more, which a connection may take.
func patientWithHandshakes(_ string, next sim.Publish) sim.Publish {
	return func(write core.Action, done func(error)) {
		write.Until = write.Until.Add(4 * time.Second)
		next(write, done)
	}
}

func olderAfterNewer(_ string, next sim.Publish) sim.Publish {
	var failed *core.Action
	return func(write core.Action, done func(error)) {
		next(write, func(err error) {
			switch {
			case err != nil && failed == nil:
				failed = &write
			case err == nil && failed != nil:
				again := *failed
				again.Until, again.Next, failed = write.Until, write.Next, nil
				next(again, done)
				return
			}
			done(err)
		})
	}
}

func retryUntilWritten(_ string, next sim.Publish) sim.Publish {
	return func(write core.Action, done func(error)) {
		write.Until = write.Until.Add(time.Hour)
		var try func(error)
		try = func(err error) {
			if err == nil {
				done(nil)
				return
			}
			next(write, try)
		}
		next(write, try)
	}
}

// backsOff waits twice as long after every tick on which a plugin failed, up to eight intervals.
func backsOff() func(core.Config, core.State, core.Event) (core.State, core.Action) {
	failures := map[string]int{}
	return func(c core.Config, s core.State, ev core.Event) (core.State, core.Action) {
		if ev.Kind == core.Probed {
			failures[c.Node]++
			if !slices.ContainsFunc(ev.Results, func(r core.Result) bool { return r.Answer == nil || r.Answer.Healthz != "ok" }) {
				failures[c.Node] = 0
			}
		}
		s, a := core.Step(c, s, ev)
		if a.Kind == core.Wait {
			a.Until = a.Until.Add(c.Timing.Interval * (1<<min(failures[c.Node], 3) - 1))
		}
		return s, a
	}
}

// catchesUp keeps a schedule of its own for each node, and nothing between two ticks.
func catchesUp() func(core.Config, core.State, core.Event) (core.State, core.Action) {
	due := map[string]time.Time{}
	return func(c core.Config, s core.State, ev core.Event) (core.State, core.Action) {
		if ev.Kind == core.Timer {
			s = core.State{}
			if due[c.Node].IsZero() {
				due[c.Node] = ev.Now
			}
		}
		s, a := core.Step(c, s, ev)
		if a.Kind == core.Wait {
			due[c.Node] = due[c.Node].Add(c.Timing.Interval)
			a.Until = due[c.Node]
		}
		return s, a
	}
}
