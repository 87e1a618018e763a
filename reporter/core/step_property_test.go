package core

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kmsharness/kmsharness/contract"
)

// world runs the core in virtual time against a world that rapid draws, and records what the core did.
type world struct {
	t      *rapid.T
	cfg    Config
	now    time.Time
	skew   time.Duration // wall clock minus now
	pauses bool
	jumps  bool // of the wall clock
	ticks  []time.Time
	writes []write
}

type write struct {
	begin  time.Time
	report contract.Report
}

func (w *world) pass(label string, atMost time.Duration) {
	d := rapid.Int64Range(0, int64(atMost)).Draw(w.t, label)
	if w.pauses && rapid.IntRange(0, 9).Draw(w.t, "pause") == 0 {
		d += rapid.Int64Range(0, int64(10*w.cfg.Timing.Interval)).Draw(w.t, "paused")
	}
	w.now = w.now.Add(time.Duration(d))
}

// run plays so many events. Every Step is played twice, to see that it changes nothing that it was given.
func (w *world) run(events int) {
	tm := w.cfg.Timing
	var s State
	ev := Event{Kind: Timer, Now: w.now}
	for range events {
		again, same := Step(w.cfg, s, ev)
		next, a := Step(w.cfg, s, ev)
		if !reflect.DeepEqual(again, next) || !reflect.DeepEqual(same, a) {
			w.t.Fatalf("the same step twice: %+v and %+v", same, a)
		}
		s = next
		switch a.Kind {
		case Probe:
			w.ticks = append(w.ticks, w.now)
			if w.jumps && rapid.IntRange(0, 9).Draw(w.t, "jump") == 0 {
				w.skew += time.Duration(rapid.Int64Range(-3*int64(tm.Interval), 3*int64(tm.Interval)).Draw(w.t, "by"))
			}
			results := []Result{
				{KeyID: "2", Started: w.now.Add(w.skew), Answer: &Answer{"v2", "ok", "kek-1"}},
				{KeyID: "1", Started: w.now.Add(w.skew), Failure: &Failure{"Unavailable", "refused"}},
			}
			w.pass("probes", tm.ProbeTimeout)
			ev = Event{Kind: Probed, Now: w.now, Results: results}
		case Write:
			w.writes = append(w.writes, write{w.now, a.Report})
			w.pass("write", tm.WriteTimeout)
			ev = Event{Kind: Wrote, Now: w.now}
		case Wait:
			if a.Until.After(w.now) {
				w.now = a.Until
			}
			w.pass("timer", 0)
			ev = Event{Kind: Timer, Now: w.now, Jitter: time.Duration(rapid.Int64Range(-int64(tm.Jitter), int64(tm.Jitter)).Draw(w.t, "jitter"))}
		}
	}
}

func drawConfig(t *rapid.T) Config {
	i := time.Duration(rapid.Int64Range(int64(100*time.Millisecond), int64(time.Minute)).Draw(t, "interval"))
	part := func(label string, of time.Duration) time.Duration {
		return time.Duration(rapid.Int64Range(1, int64(of)).Draw(t, label))
	}
	return Config{Node: "cp-1", Timing: contract.Timing{Interval: i, Jitter: part("J", i/10), ProbeTimeout: part("R", i), WriteTimeout: part("W", i), AggregatorLatency: time.Second}}
}

func TestCadenceWithoutPauses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, cfg: drawConfig(t), now: start}
		w.run(200)
		tm := w.cfg.Timing
		for i := 1; i < len(w.writes); i++ {
			if gap := w.writes[i].begin.Sub(w.writes[i-1].begin); gap < tm.CadenceMin() || gap > tm.CadenceMax() {
				t.Fatalf("write %d begins %v after the one before, allowed %v to %v", i, gap, tm.CadenceMin(), tm.CadenceMax())
			}
		}
		if len(w.writes) < len(w.ticks)-1 {
			t.Fatalf("%d ticks but %d writes: something was dropped although nothing was late", len(w.ticks), len(w.writes))
		}
	})
}

func TestPausesNeverWriteOldResultsNorBurst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, cfg: drawConfig(t), now: start, pauses: true}
		w.run(200)
		tm := w.cfg.Timing
		for i, wr := range w.writes {
			if age := wr.begin.Add(tm.WriteTimeout).Sub(wr.report.Oldest()); age > tm.MaxProbeAge()+time.Second {
				t.Fatalf("write %d may carry a probe %v old, allowed %v", i, age, tm.MaxProbeAge())
			}
			if i > 0 && wr.begin.Sub(w.writes[i-1].begin) < tm.CadenceMin() {
				t.Fatalf("writes %d and %d are %v apart, at least %v", i-1, i, wr.begin.Sub(w.writes[i-1].begin), tm.CadenceMin())
			}
			if i > 0 && wr.report.Oldest().Before(w.writes[i-1].report.Oldest()) {
				t.Fatalf("lastChecked goes back at write %d", i)
			}
		}
		for i := 1; i < len(w.ticks); i++ {
			if gap := w.ticks[i].Sub(w.ticks[i-1]); gap < tm.CadenceMin() {
				t.Fatalf("ticks %d and %d are %v apart, at least %v", i-1, i, gap, tm.CadenceMin())
			}
		}
	})
}

func TestWallClockJumps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, cfg: drawConfig(t), now: start, jumps: true}
		w.run(200)
		for i := 1; i < len(w.writes); i++ {
			before, now := newest(w.writes[i-1].report), w.writes[i].report.Oldest()
			if now.Before(before) && before.Sub(now) <= w.cfg.Timing.Interval {
				t.Fatalf("lastChecked goes back by %v at write %d, which readers would have believed", before.Sub(now), i)
			}
		}
	})
}

func TestEveryReportEncodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		answer := &Answer{rapid.String().Draw(t, "version"), rapid.String().Draw(t, "healthz"), rapid.String().Draw(t, "key_id")}
		r := Result{KeyID: "2", Started: start, Answer: answer}
		if rapid.Bool().Draw(t, "failed") {
			r.Answer, r.Failure = nil, &Failure{"Code(99)", rapid.String().Draw(t, "text")}
		}
		report := contract.Report{Node: "cp-1", Entries: []contract.Entry{r.Entry(time.Second)}}
		message, err := contract.EncodeMessage(report.Entries)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := contract.DecodeMessage(message); err != nil || !reflect.DeepEqual(back, report.Entries) {
			t.Fatalf("%s\nreads back as %+v, %v", message, back, err)
		}
		if _, err := report.Typed(nil); err != nil {
			t.Fatal(err)
		}
	})
}
