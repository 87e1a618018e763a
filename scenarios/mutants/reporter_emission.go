package mutants

import (
	"context"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/scenarios/mutants/mutation"
)

// emission is reporters that write at the wrong time, or too old news.
func emission() []Mutant {
	return []Mutant{
		{
			Name: "only-news", Scenario: "steady-state", Caught: []string{"CADENCE"}, Virtual: looping(onlyNews),
			Mistake: "a publisher that compares the entries with those of its last write, times apart, and spares the API server the rest: thrift that takes the meaning from lastChecked",
		},
		{
			Name: "queue-and-flush", Scenario: "apiserver-down", Caught: []string{"FRESH-ONLY"}, Virtual: publishing(queueAndFlush),
			Mistake: "a work queue between probing and writing, so that nothing gets lost: after an outage the results of all of it are written, the oldest first",
		},
		{
			Name: "older-after-newer", Scenario: "apiserver-down", Caught: []string{"MONOTONIC"}, Virtual: publishing(olderAfterNewer),
			Mistake: "a failed write that is retried beside the ticks: it succeeds after the next one and puts the older result over the newer",
		},
		{
			Name: "queue-behind-a-cut", Scenario: "reporter-cut-off", Caught: []string{"FRESH-ONLY"}, Virtual: publishing(queueAndFlush),
			Mistake: "the same behind a network that loses packets: one request may have been under way, and arrive late; the others were only kept",
		},
		{
			Name: "retry-until-written", Scenario: "apiserver-down", Caught: []string{"FRESH-ONLY"}, Virtual: publishing(retryUntilWritten),
			Mistake: "a publisher that loops until its write succeeds: no tick happens meanwhile, and what it writes at last is from before the outage",
		},
		{
			Name: "deadline-after-the-handshake", Scenario: "service-network-faults", Caught: []string{"FRESH-ONLY"}, Virtual: publishing(patientWithHandshakes),
			Mistake: "a deadline for each request and another, of 4 s, for a connection: when handshakes are slow, what is written is older than an interval and both deadlines",
		},
		{
			Name: "silent-after-a-refusal", Scenario: "typed-list-full", Contract: scenario.ContractHealthReports, Caught: []string{"CADENCE"}, Virtual: publishing(silentAfterARefusal),
			Mistake: "a refused write taken for a mistake of its own that no repetition mends: the list has room again, and the reporter does not look",
		},
		{
			Name: "credential-read-once", Scenario: "reporter-credential-expires", Caught: []string{"CADENCE"}, Virtual: reporting(keepCredential),
			Mistake: "a client that was given the certificate's text at its start: the file is renewed in time, and nobody reads it until somebody restarts the reporter",
		},
		{
			Name: "token-read-once", Scenario: "service-token-rotates", Caught: []string{"CADENCE"}, Virtual: reporting(keepCredential),
			Mistake: "the token of the in-cluster configuration as text, in place of its file: a kubelet rotates it in time, and the first one is used for ever",
		},
		{
			Name: "legacy-token-for-good", Scenario: "legacy-token-revoked", Caught: []string{"steps[12].expect"}, Virtual: reporting(keepCredential),
			Mistake: "the same with the token of a Secret: it does not expire, so nobody expects another one until the first is revoked",
		},
		{
			Name: "every-third-interval", Scenario: "steady-state", Caught: []string{"CADENCE"}, Virtual: tuned(func(t *contract.Timing) { t.Interval *= 3 }),
			Mistake: "a reporter that knows when a report is stale, and writes shortly before: no gap is longer than the bound of a single one",
		},
		{
			Name: "every-third-left-out", Scenario: "steady-state", Caught: []string{"CADENCE"}, Virtual: publishing(leavesOutEveryThird),
			Mistake: "a rate limit of the client that is a little lower than the interval: no gap is longer than CADENCE allows between two writes, and every third report is missing",
		},
		{
			Name: "last-checked-of-every-third", Scenario: "steady-state", Caught: []string{"MONOTONIC"}, Virtual: publishing(keepsLastChecked),
			Mistake: "a lastChecked that is read from a cache which is refreshed every third tick: it stands still, and is never too old",
		},
		{
			Name: "slow-ticks", Scenario: "steady-state", Caught: []string{"CADENCE"}, Virtual: tuned(func(t *contract.Timing) { t.Interval *= 4 }),
			Mistake: "a reporter that backs off to four intervals while nothing changes: staleness is derived from the interval that it was given",
		},
		{
			Name: "backs-off-from-failures", Scenario: "failure-stage-long", Caught: []string{"CADENCE"}, Virtual: stepping(backsOff),
			Mistake: "exponential back-off on repeated failures, as for a client that wants something: the reports of a plugin that is down for long grow stale, and its recovery is seen late",
		},
		{
			Name: "fast-ticks", Scenario: "steady-state", Caught: []string{"CADENCE"}, Virtual: tuned(func(t *contract.Timing) { t.Interval /= 3 }),
			Mistake: "a reporter that probes and writes at the rate of its probe deadline, three times per interval: the API servers pay for it",
		},
		{
			Name: "no-jitter", Scenario: "steady-state", Caught: []string{"CADENCE"},
			Virtual: looping(func(_ *startingReporter, l *reporter.Loop) { l.Jitter = func(time.Duration) time.Duration { return 0 } }),
			Mistake: "a plain ticker: reporters that were started together write together for as long as they live, all to the same object",
		},
	}
}

func onlyNews(_ *startingReporter, l *reporter.Loop) {
	l.Publisher = &mutation.OnlyNews{Publisher: l.Publisher}
}

func leavesOutEveryThird(next apply) apply {
	n := 0
	return func(ctx context.Context, write core.Action) error {
		if n++; n%3 == 0 {
			return nil
		}
		return next(ctx, write)
	}
}

func keepsLastChecked(next apply) apply {
	n, last := 0, time.Time{}
	return func(ctx context.Context, write core.Action) error {
		if n++; n%3 == 1 {
			last = write.Report.Entries[0].LastChecked
		}
		write.Report.Entries = slices.Clone(write.Report.Entries)
		for i := range write.Report.Entries {
			write.Report.Entries[i].LastChecked = last
		}
		return next(ctx, write)
	}
}

func silentAfterARefusal(next apply) apply {
	refused := false
	return func(ctx context.Context, write core.Action) error {
		if refused {
			return nil
		}
		err := next(ctx, write)
		refused = err != nil
		return err
	}
}

func queueAndFlush(next apply) apply {
	var queue []core.Action
	return func(ctx context.Context, write core.Action) error {
		for queue = append(queue, write); len(queue) > 0; queue = queue[1:] {
			oldest := queue[0]
			oldest.Until, oldest.Next = write.Until, write.Next
			if err := next(ctx, oldest); err != nil {
				return err
			}
		}
		return nil
	}
}

// patientWithHandshakes gives a write four seconds more, which a connection may take.
func patientWithHandshakes(next apply) apply {
	return func(ctx context.Context, write core.Action) error {
		write.Until = write.Until.Add(4 * time.Second)
		return next(ctx, write)
	}
}

func olderAfterNewer(next apply) apply {
	var failed *core.Action
	return func(ctx context.Context, write core.Action) error {
		err := next(ctx, write)
		switch {
		case err != nil && failed == nil:
			failed = &write
		case err == nil && failed != nil:
			again := *failed
			again.Until, again.Next, failed = write.Until, write.Next, nil
			return next(ctx, again)
		}
		return err
	}
}

func retryUntilWritten(next apply) apply {
	return func(ctx context.Context, write core.Action) error {
		write.Until = write.Until.Add(time.Hour)
		return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) { return next(ctx, write) == nil, nil })
	}
}

// backsOff waits twice as long after every tick on which a plugin failed, up to eight intervals.
func backsOff() step {
	failures := 0
	return func(c core.Config, s core.State, ev core.Event) (core.State, core.Action) {
		if ev.Kind == core.Probed {
			failures++
			if !slices.ContainsFunc(ev.Results, func(r core.Result) bool { return r.Answer == nil || r.Answer.Healthz != "ok" }) {
				failures = 0
			}
		}
		s, a := core.Step(c, s, ev)
		if a.Kind == core.Wait {
			a.Until = a.Until.Add(c.Timing.Interval * (1<<min(failures, 3) - 1))
		}
		return s, a
	}
}

// accountToken is where a pod finds the token of its service account.
const accountToken = cluster.ServiceAccountDir + "/token"

// keepCredential lets a reporter use copies of its credential that are made when it starts.
func keepCredential(r *startingReporter) error {
	if r.Kubeconfig == "" {
		inner, token := r.Host, r.File(accountToken)
		r.SeenFunc = func(path string) string {
			if path == accountToken {
				return token + ".first"
			}
			return inner.File(path)
		}
		text, err := os.ReadFile(token)
		if err != nil {
			return err
		}
		return os.WriteFile(token+".first", text, 0o600)
	}
	config, err := clientcmd.LoadFromFile(r.Kubeconfig)
	if err == nil {
		err = api.FlattenConfig(config)
	}
	if err != nil {
		return err
	}
	r.Kubeconfig += ".first"
	return clientcmd.WriteToFile(*config, r.Kubeconfig)
}
