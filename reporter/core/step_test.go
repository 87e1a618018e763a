package core

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

var start = time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)

func testConfig() Config {
	return Config{Node: "cp-1", Timing: contract.Timing{
		Interval: time.Second, Jitter: 100 * time.Millisecond,
		ProbeTimeout: 500 * time.Millisecond, WriteTimeout: time.Second, AggregatorLatency: time.Second,
	}}
}

// at is the instant so many milliseconds after start.
func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

func probed(now, started time.Time, keyID, kekID string) Event {
	r := Result{KeyID: keyID, Started: started, Answer: &Answer{Version: "v2", Healthz: "ok", KeyID: kekID}}
	if kekID == "" {
		r.Answer, r.Failure = nil, &Failure{Code: "Unavailable", Text: "connection refused"}
	}
	return Event{Kind: Probed, Now: now, Results: []Result{r}}
}

func timer(now time.Time) Event { return Event{Kind: Timer, Now: now} }

// play feeds events and returns the last action.
func play(t *testing.T, cfg Config, s State, events ...Event) (State, Action) {
	t.Helper()
	var a Action
	for _, ev := range events {
		s, a = Step(cfg, s, ev)
	}
	return s, a
}

func expect(t *testing.T, a Action, kind ActionKind, until time.Time, dropped DropReason) {
	t.Helper()
	if a.Kind != kind || !a.Until.Equal(until) || a.Dropped != dropped {
		t.Fatalf("got %s until %v dropped %q, expected %s until %v dropped %q",
			a.Kind, a.Until.Sub(start), a.Dropped, kind, until.Sub(start), dropped)
	}
}

func TestFirstTickBeginsAtOnceAndWritesAtOnce(t *testing.T) {
	s, a := play(t, testConfig(), State{}, timer(at(0)))
	expect(t, a, Probe, time.Time{}, "")
	s, a = play(t, testConfig(), s, probed(at(3), at(0), "2", "kek-1"))
	expect(t, a, Write, at(1003), "")
	if len(a.Report.Entries) != 1 || a.Report.Node != "cp-1" || a.Report.Entries[0].Status != contract.StatusHealthy {
		t.Fatalf("report %+v", a.Report)
	}
	_, a = play(t, testConfig(), s, Event{Kind: Wrote, Now: at(10)})
	expect(t, a, Wait, at(1000), "")
}

func TestJitterMovesTheNextTickAndIsClamped(t *testing.T) {
	for _, tt := range []struct{ jitter, due int }{{0, 1000}, {50, 1050}, {-50, 950}, {900, 1100}, {-900, 900}} {
		ev := timer(at(0))
		ev.Jitter = time.Duration(tt.jitter) * time.Millisecond
		_, a := play(t, testConfig(), State{}, ev, probed(at(1), at(0), "2", "k"), Event{Kind: Wrote, Now: at(2)})
		expect(t, a, Wait, at(tt.due), "")
	}
}

func TestEarlyTimerWaitsOn(t *testing.T) {
	s, _ := play(t, testConfig(), State{}, timer(at(0)), probed(at(1), at(0), "2", "k"), Event{Kind: Wrote, Now: at(2)})
	_, a := play(t, testConfig(), s, timer(at(500)))
	expect(t, a, Wait, at(1000), "")
}

func TestWriteAfterASlowTickIsHeld(t *testing.T) {
	s, _ := play(t, testConfig(), State{}, timer(at(0)), probed(at(500), at(0), "2", ""), Event{Kind: Wrote, Now: at(510)}, timer(at(1000)))
	s, a := play(t, testConfig(), s, probed(at(1001), at(1000), "2", "k"))
	expect(t, a, Wait, at(1400), "")
	s, a = play(t, testConfig(), s, timer(at(1400)))
	expect(t, a, Write, at(2400), "")
	_, a = play(t, testConfig(), s, Event{Kind: Wrote, Now: at(1410)})
	expect(t, a, Wait, at(2000), "")
}

func TestPausedReporterDropsAndTicksOnce(t *testing.T) {
	s, a := play(t, testConfig(), State{}, timer(at(0)), probed(at(60_000), at(0), "2", "k"))
	expect(t, a, Wait, at(1000), DropLate)
	s, a = play(t, testConfig(), s, timer(at(60_001)))
	expect(t, a, Probe, time.Time{}, "")
	_, a = play(t, testConfig(), s, probed(at(60_002), at(60_001), "2", "k"), Event{Kind: Wrote, Now: at(60_003)})
	expect(t, a, Wait, at(61_001), "")
}

func TestPausedWhileHoldingDrops(t *testing.T) {
	s, _ := play(t, testConfig(), State{}, timer(at(0)), probed(at(500), at(0), "2", ""), Event{Kind: Wrote, Now: at(510)},
		timer(at(1000)), probed(at(1001), at(1000), "2", "k"))
	_, a := play(t, testConfig(), s, timer(at(2501)))
	expect(t, a, Wait, at(2000), DropLate)
}

func TestHungPluginIsWrittenEvenWithTheLargestDeadline(t *testing.T) {
	cfg := testConfig()
	cfg.Timing.ProbeTimeout = cfg.Timing.Interval
	_, a := play(t, cfg, State{}, timer(at(0)), probed(at(1010), at(0), "2", ""))
	expect(t, a, Write, at(2010), "")
}

func TestClockSetBack(t *testing.T) {
	first := func() State {
		s, _ := play(t, testConfig(), State{}, timer(at(0)), probed(at(1), at(0), "2", "k"), Event{Kind: Wrote, Now: at(2)}, timer(at(1000)))
		return s
	}
	t.Run("a little: the newer result stays", func(t *testing.T) {
		_, a := play(t, testConfig(), first(), probed(at(1001), at(-500), "2", "k"))
		expect(t, a, Wait, at(2000), DropOlder)
	})
	t.Run("so far that readers disbelieve the newer one: the truth is written", func(t *testing.T) {
		_, a := play(t, testConfig(), first(), probed(at(1001), at(-1001), "2", "k"))
		expect(t, a, Write, at(2001), "")
	})
}

func TestLastKEKIDIsKeptPerPlugin(t *testing.T) {
	s, a := play(t, testConfig(), State{}, timer(at(0)), probed(at(1), at(0), "2", "kek-1"))
	first := a.LastKEKID
	s, a = play(t, testConfig(), s, Event{Kind: Wrote, Now: at(2)}, timer(at(1000)), probed(at(1001), at(1000), "2", ""))
	if a.LastKEKID["2"] != "kek-1" || a.Report.Entries[0].KEKID != "" {
		t.Fatalf("after a failure: last %v, entry %+v", a.LastKEKID, a.Report.Entries[0])
	}
	_, a = play(t, testConfig(), s, Event{Kind: Wrote, Now: at(1002)}, timer(at(2000)), probed(at(2001), at(2000), "2", "kek-2"))
	if a.LastKEKID["2"] != "kek-2" || first["2"] != "kek-1" {
		t.Fatalf("after a rotation: last %v, first action now holds %v", a.LastKEKID, first)
	}
}

func TestUnexpectedEventsOnlyWait(t *testing.T) {
	s, _ := play(t, testConfig(), State{}, timer(at(0)), probed(at(1), at(0), "2", "k"), Event{Kind: Wrote, Now: at(2)})
	for _, ev := range []Event{{Kind: Wrote, Now: at(3)}, probed(at(3), at(3), "2", "k"), {Kind: "nonsense", Now: at(3)}} {
		_, a := play(t, testConfig(), s, ev)
		expect(t, a, Wait, at(1000), "")
	}
}
