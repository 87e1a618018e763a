package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/kmsharness/kmsharness/contract"
)

// drawWorld is a world in any state: nodes with and without reports in either form, readable or not, of any age,
// and reports of nodes that nobody expects.
func drawWorld(t *rapid.T, tb testing.TB) *world {
	w := newWorld(tb, nodeNames(rapid.IntRange(0, 4).Draw(t, "nodes"))...)
	w.active = rapid.Bool().Draw(t, "active")
	w.union = drawUnion(t)
	for _, n := range append(nodeNames(5), "stranger") {
		if rapid.Bool().Draw(t, n+" reports") {
			drawReport(t, w, n)
		}
	}
	if rapid.Bool().Draw(t, "restarted") {
		w.memory = Memory{}
	}
	return w
}

func drawUnion(t *rapid.T) contract.Union {
	inertia := rapid.SampledFrom([]time.Duration{0, 0, time.Second, 45 * time.Second, 2 * time.Minute}).Draw(t, "inertia")
	return contract.Union{Inertia: contract.Inertia{All: inertia}}
}

func drawReport(t *rapid.T, w *world, node string) {
	w.typedForm = rapid.Bool().Draw(t, node+" typed")
	age := rapid.SampledFrom([]time.Duration{skew, ahead, 0, time.Second, justFresh, justStale, time.Hour}).Draw(t, node+" age")
	var entries []contract.Entry
	for i := range rapid.IntRange(1, 3).Draw(t, node+" plugins") {
		entries = append(entries, contract.Entry{
			KeyID:  fmt.Sprint(i),
			KEKID:  rapid.SampledFrom([]string{"", "k", "l"}).Draw(t, "kekID"),
			Status: rapid.SampledFrom([]contract.Status{contract.StatusHealthy, contract.StatusUnhealthy, contract.StatusError}).Draw(t, "status"),
			Detail: rapid.StringN(0, 40, -1).Draw(t, "detail"),
		})
	}
	w.report(node, age, entries...)
	if rapid.IntRange(0, 5).Draw(t, node+" malformed") == 0 {
		w.message(node, rapid.String().Draw(t, "message"))
	}
}

// A step whose decisions were carried out is followed by one that writes nothing.
func TestPropertyIdempotent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt, t)
		w.step()
		before := w.writes
		if w.step(); w.writes != before {
			rt.Fatalf("the second step wrote again: %+v", w.decision)
		}
	})
}

// Between now and the wake-up nothing changes, so no wake-up is missing.
func TestPropertyWakesInTime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt, t)
		w.step()
		before, until := w.writes, w.decision.NextWake.Add(-instant)
		if w.decision.NextWake.IsZero() {
			until = w.now.Add(1000 * time.Hour)
		}
		span := until.Sub(w.now)
		if span < 0 {
			rt.Fatalf("wakes at %v, before now %v", w.decision.NextWake, w.now)
		}
		w.now = w.now.Add(time.Duration(rapid.Int64Range(0, int64(span)).Draw(rt, "later")))
		w.step()
		w.now = until
		if w.step(); w.writes != before {
			rt.Fatalf("the answer changed before the wake-up at %v: %+v", w.decision.NextWake, w.decision)
		}
	})
}

// No fresh unhealthy entry of an expected node is hidden, whatever the others report.
func TestPropertyNoFailureIsHidden(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt, t)
		w.active = true
		w.step()
		got, _ := find(w.decision.Rollups, contract.ConditionDegraded)
		for node, r := range w.input().Observed.Reports {
			for _, e := range r.Entries {
				_, expected := w.nodes[node]
				fresh := contract.FreshnessAt(w.now, e.LastChecked, testInterval) == contract.Fresh
				if !expected || !fresh || e.Status == contract.StatusHealthy {
					continue
				}
				if got.Status != True || !strings.Contains(got.Message, node+"/"+e.KeyID) {
					rt.Fatalf("%s/%s is fresh and %s, but Degraded says %s %s: %s", node, e.KeyID, e.Status, got.Status, got.Reason, got.Message)
				}
			}
		}
	})
}

// A malformed report of another node changes nothing of what is said about this one.
func TestPropertyMalformedHidesNobody(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt, t)
		w.active = true
		before := complaints(w, "zz")
		w.nodes["zz"] = epoch()
		w.message("zz", "["+rapid.String().Draw(rt, "junk"))
		if after := complaints(w, "zz"); !slices.Equal(after, before) {
			rt.Fatalf("before %q, after %q", before, after)
		}
		if got := says(w.step().Rollups, contract.ConditionDegraded); strings.HasPrefix(got, False) {
			rt.Fatalf("Degraded is %s beside a malformed report", got)
		}
	})
}

// complaints are the lines about all nodes but one.
func complaints(w *world, but string) []string {
	in := w.input()
	var out []string
	for _, n := range assess(in, w.memory.remember(in)) {
		for _, l := range n.complaints() {
			if n.name != but {
				out = append(out, l.String())
			}
		}
	}
	return out
}

func TestPropertyMessagesAreBoundedAndSafe(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, nodeNames(200)...)
		w.typedForm = rapid.Bool().Draw(rt, "typed")
		detail := rapid.StringN(1, 1024, -1).Draw(rt, "detail")
		for n := range maps.Keys(w.nodes) {
			w.report(n, 0, failed("1", contract.StatusUnhealthy, detail))
		}
		for _, c := range append(w.step().Rollups, w.co...) {
			if n := utf8.RuneCountInString(c.Message); n > contract.MaxRollupMessageChars || !utf8.ValidString(c.Message) {
				rt.Fatalf("%s: %d characters, valid %v", c.Type, n, utf8.ValidString(c.Message))
			}
		}
	})
}

func TestTwoHundredTypedEntries(t *testing.T) {
	w := newWorld(t, nodeNames(100)...)
	w.typedForm = true
	for n := range maps.Keys(w.nodes) {
		w.report(n, 0, failed("1", contract.StatusError, strings.Repeat("d", 1024)), healthy("2", "k"))
	}
	got, _ := find(w.step().Rollups, contract.ConditionDegraded)
	if got.Reason != contract.ReasonPluginUnreachable || !strings.Contains(got.Message, "cp-000/1") || !strings.HasSuffix(got.Message, " more") {
		t.Errorf("got %s %q", got.Reason, got.Message)
	}
}
