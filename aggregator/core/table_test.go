package core

import (
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

const (
	justFresh = 4 * testInterval
	justStale = 4*testInterval + time.Millisecond
	ahead     = -testInterval
	skew      = -testInterval - time.Millisecond
)

// The table of docs/contract.md, "The aggregator", and the decisions on the other two rollups. Every case has two
// nodes, cp-1 as described and cp-2 healthy, in both wire forms.
func TestRollups(t *testing.T) {
	ok := healthy("1", "k")
	sick, dead := failed("1", contract.StatusUnhealthy, "kaput"), failed("1", contract.StatusError, "Unavailable")
	for name, c := range map[string]struct {
		report                           func(w *world)
		degraded, available, progressing string
		message                          string
	}{
		"healthy":                {at(0, ok), "False/AsExpected", "True/AsExpected", "False/AsExpected", "2 plugins"},
		"just fresh":             {at(justFresh, ok), "False/AsExpected", "True/AsExpected", "False/AsExpected", ""},
		"clock ahead":            {at(ahead, ok), "False/AsExpected", "True/AsExpected", "False/AsExpected", ""},
		"unhealthy":              {at(0, sick), "True/PluginUnhealthy", "False/NoUsableWriteKey", "False/NotConverged", "cp-1/1: unhealthy: kaput"},
		"error":                  {at(0, dead), "True/PluginUnreachable", "False/NoUsableWriteKey", "False/NotConverged", "cp-1/1: error: Unavailable"},
		"stale":                  {at(justStale, ok), "Unknown/ReportStale", "Unknown/WriteKeyUnknown", "False/NotConverged", "cp-1/1: report is stale"},
		"stale unhealthy":        {at(justStale, sick), "Unknown/ReportStale", "Unknown/WriteKeyUnknown", "False/NotConverged", "last known unhealthy"},
		"skewed":                 {at(skew, ok), "Unknown/ClockSkew", "Unknown/WriteKeyUnknown", "False/NotConverged", "cp-1/1: checked in the future"},
		"old key fails":          {at(0, ok, failed("0", contract.StatusError, "gone")), "True/PluginUnreachable", "True/AsExpected", "True/KeyMigrationInProgress", "cp-1/0: error: gone"},
		"two keys":               {at(0, ok, healthy("0", "k0")), "False/AsExpected", "True/AsExpected", "True/KeyMigrationInProgress", ""},
		"other kek":              {at(0, healthy("1", "k2")), "False/AsExpected", "True/AsExpected", "True/KEKRotationInProgress", ""},
		"other kek and two keys": {at(0, healthy("1", "k2"), healthy("0", "k0")), "False/AsExpected", "True/AsExpected", "True/KEKRotationInProgress", ""},
		"no kekID":               {at(0, healthy("1", "")), "False/AsExpected", "True/AsExpected", "False/NotConverged", ""},
		"none, in grace":         {vanished(0), "False/AwaitingFirstReport", "True/AsExpected", "False/NotConverged", "cp-1: awaiting"},
		"none, grace over":       {vanished(justStale), "Unknown/ReportMissing", "Unknown/WriteKeyUnknown", "False/NotConverged", "cp-1: no report"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, typed := range []bool{false, true} {
				w := newWorld(t, "cp-1", "cp-2")
				w.typedForm = typed
				c.report(w)
				w.report("cp-2", 0, healthy("1", "k"))
				d := w.step()
				check(t, d, contract.ConditionDegraded, c.degraded)
				check(t, d, contract.ConditionAvailable, c.available)
				check(t, d, contract.ConditionProgressing, c.progressing)
				if got, _ := find(d.Rollups, contract.ConditionDegraded); !strings.Contains(got.Message, c.message) {
					t.Errorf("message %q, want it to contain %q", got.Message, c.message)
				}
				// During a migration the write key may have converged while Progressing is True.
				if _, _, ok := Converged(w.input()); ok != (c.progressing == "False/AsExpected") && !strings.HasPrefix(c.progressing, True) {
					t.Errorf("Converged is %v beside Progressing %s", ok, c.progressing)
				}
			}
		})
	}
}

func check(t *testing.T, d Decision, conditionType, want string) {
	t.Helper()
	if got := says(d.Rollups, conditionType); got != want {
		t.Errorf("%s: got %s, want %s", conditionType, got, want)
	}
}

// at is cp-1's report, checked age ago.
func at(age time.Duration, entries ...contract.Entry) func(*world) {
	return func(w *world) { w.report("cp-1", age, entries...) }
}

// vanished is no report of cp-1 since age ago.
func vanished(age time.Duration) func(*world) {
	return func(w *world) {
		w.memory.nodes["cp-1"] = expectation{created: epoch(), since: w.now.Add(-age)}
	}
}

// Worst first: whatever else is wrong, the upper row gives status and reason, and the message names the rest too.
func TestWorstRowWins(t *testing.T) {
	rows := []struct {
		reason string
		break1 func(w *world, node string)
	}{
		{contract.ReasonPluginUnhealthy, func(w *world, n string) { w.report(n, 0, failed("1", contract.StatusUnhealthy, "x")) }},
		{contract.ReasonPluginUnreachable, func(w *world, n string) { w.report(n, 0, failed("1", contract.StatusError, "x")) }},
		{contract.ReasonReportStale, func(w *world, n string) { w.report(n, justStale, healthy("1", "k")) }},
		{contract.ReasonReportMalformed, func(w *world, n string) { w.message(n, "{") }},
		{contract.ReasonClockSkew, func(w *world, n string) { w.report(n, skew, healthy("1", "k")) }},
		{contract.ReasonReportMissing, func(*world, string) {}},
	}
	for worst := range rows {
		var names []string
		for _, r := range rows[worst:] {
			names = append(names, strings.ToLower(r.reason))
		}
		w := newWorld(t, names...)
		for i, r := range rows[worst:] {
			r.break1(w, names[i])
		}
		d := w.step()
		got, _ := find(d.Rollups, contract.ConditionDegraded)
		if got.Reason != rows[worst].reason {
			t.Errorf("got %s, want %s", got.Reason, rows[worst].reason)
		}
		for _, n := range names {
			if !strings.Contains(got.Message, n) {
				t.Errorf("message %q does not name %s", got.Message, n)
			}
		}
	}
}
