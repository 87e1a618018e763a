package stream

import (
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"

	"github.com/kmsharness/kmsharness/contract"
	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
	"github.com/kmsharness/kmsharness/reporter/core"
)

func timing() contract.Timing {
	return contract.Timing{Interval: time.Second, Jitter: 100 * time.Millisecond, ProbeTimeout: 900 * time.Millisecond, WriteTimeout: time.Second, AggregatorLatency: time.Second}
}

func second(s float64) time.Time {
	return time.Unix(1e9, 0).UTC().Add(time.Duration(s * float64(time.Second)))
}

// write is a report that was made at a time.
func write(at time.Time) core.Action {
	return core.Action{Kind: core.Write, Until: at.Add(timing().WriteTimeout), Next: at.Add(timing().CadenceMin()), LastKEKID: map[string]string{"1": "kek"},
		Report: contract.Report{Node: "cp-1", Entries: []contract.Entry{{KeyID: "1", KEKID: "kek", Status: contract.StatusHealthy, LastChecked: at}}}}
}

func newOutbox() *Outbox { return &Outbox{KeyIDs: []string{"1"}, Timing: timing()} }

// next is the time of the report that is sent now; zero for none.
func next(t testing.TB, o *Outbox, now time.Time) (checked time.Time, sequence uint64) {
	t.Helper()
	r, ok := o.Next(now)
	if !ok {
		return time.Time{}, 0
	}
	return r.GetPlugins()[0].GetLastChecked().AsTime(), r.GetSequence()
}

func ok(sequence uint64) *healthv1.Acknowledgement {
	return &healthv1.Acknowledgement{Sequence: sequence, Code: http.StatusOK}
}

// S1-05: what was reported is reported again on each new stream, and after each configuration.
func TestReportedAgain(t *testing.T) {
	o := newOutbox()
	if at, _ := next(t, o, second(0)); !at.IsZero() {
		t.Errorf("nothing was reported, and %v is sent", at)
	}
	o.Stood()
	if at, _ := next(t, o, second(0)); !at.IsZero() {
		t.Errorf("nothing was reported, and %v is sent", at)
	}
	o.Put(write(second(0)))
	for name, begin := range map[string]func(){"report": func() {}, "new stream": o.Stood, "configuration": func() { o.Configured(&healthv1.Configuration{Generation: 2}) }} {
		begin()
		at, sequence := next(t, o, second(0.1))
		if name != "report" && !at.Equal(second(0)) {
			t.Errorf("%s: %v is sent", name, at)
		}
		o.Acknowledged(ok(sequence))
		if at, _ := next(t, o, second(0.1)); !at.IsZero() {
			t.Errorf("%s: sent twice", name)
		}
	}
	// Also while the acknowledgement of the stream before is missing.
	o.Put(write(second(1)))
	next(t, o, second(1))
	o.Stood()
	if at, sequence := next(t, o, second(1.1)); !at.Equal(second(1)) || sequence != 1 {
		t.Errorf("after a stream that broke: %v, sequence %d", at, sequence)
	}
}

// Nothing is queued, and nothing is sent after the next tick is due.
func TestNothingOld(t *testing.T) {
	o := newOutbox()
	o.Stood()
	o.Put(write(second(0)))
	next(t, o, second(0))
	o.Put(write(second(1)))
	o.Put(write(second(2)))
	if at, _ := next(t, o, second(2)); !at.IsZero() {
		t.Errorf("%v is sent before the acknowledgement of the one before", at)
	}
	o.Acknowledged(ok(1))
	if at, _ := next(t, o, second(2)); !at.Equal(second(2)) {
		t.Errorf("%v is sent, want the newest", at)
	}
	o.Stood()
	due := second(2).Add(timing().CadenceMin())
	if r, sent := o.Next(due.Add(-time.Millisecond)); !sent || r.GetTimeout().AsDuration() != 900*time.Microsecond {
		t.Errorf("just before it is too old: %v, %v", sent, r)
	}
	o.Stood()
	if at, _ := next(t, o, due); !at.IsZero() {
		t.Errorf("%v is sent when it is too old", at)
	}
	if at, _ := next(t, o, second(2)); !at.IsZero() {
		t.Errorf("%v is sent although it was given up", at)
	}
}

// An acknowledgement counts if it is that of the newest report.
func TestAcknowledged(t *testing.T) {
	o := newOutbox()
	o.Stood()
	o.Put(write(second(0)))
	if newest, err := o.Acknowledged(ok(0)); newest || err != nil {
		t.Errorf("before anything was sent: %v, %v", newest, err)
	}
	next(t, o, second(0))
	for _, sequence := range []uint64{0, 2, 1 << 63} {
		if newest, _ := o.Acknowledged(ok(sequence)); newest {
			t.Errorf("sequence %d counts, sent was 1", sequence)
		}
	}
	o.Put(write(second(1)))
	if newest, err := o.Acknowledged(&healthv1.Acknowledgement{Sequence: 1, Code: http.StatusForbidden}); newest || err == nil {
		t.Errorf("a newer report waits: newest %v, %v", newest, err)
	}
	next(t, o, second(1))
	newest, err := o.Acknowledged(&healthv1.Acknowledgement{Sequence: 2, Code: http.StatusForbidden, Message: "no"})
	if !newest || !apierrors.IsForbidden(err) || err.Error() != "the aggregator could not write the report: 403: no" {
		t.Errorf("newest %v, %v", newest, err)
	}
	if newest, _ := o.Acknowledged(ok(2)); newest {
		t.Error("one acknowledgement counts twice")
	}
}

// S1-07: the generation is that of the newest configuration that names the reporter's own plugins, or none.
func TestObservedGeneration(t *testing.T) {
	for name, c := range map[string]struct {
		configs []*healthv1.Configuration
		want    int64
	}{
		"none":                {nil, 0},
		"any plugins":         {[]*healthv1.Configuration{{Generation: 3}}, 3},
		"its own":             {[]*healthv1.Configuration{{Generation: 3, KeyIds: []string{"1"}}}, 3},
		"others":              {[]*healthv1.Configuration{{Generation: 3, KeyIds: []string{"2"}}}, 0},
		"another order":       {[]*healthv1.Configuration{{Generation: 3, KeyIds: []string{"2", "1"}}}, 0},
		"its own, then other": {[]*healthv1.Configuration{{Generation: 3}, {Generation: 4, KeyIds: []string{"2"}}}, 3},
		"other, then its own": {[]*healthv1.Configuration{{Generation: 3, KeyIds: []string{"2"}}, {Generation: 4}}, 4},
	} {
		o := newOutbox()
		o.Stood()
		for _, config := range c.configs {
			o.Configured(config)
		}
		o.Put(write(second(0)))
		if r, sent := o.Next(second(0)); !sent || r.GetObservedGeneration() != c.want {
			t.Errorf("%s: sent %v with generation %d, want %d", name, sent, r.GetObservedGeneration(), c.want)
		}
	}
}

// TestOutbox draws any course of events: what is sent is the newest report, not too old, and one at a time.
func TestOutbox(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, now, newest, waits, sequence := newOutbox(), second(0), time.Time{}, false, uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"put":   func(*rapid.T) { newest = now; o.Put(write(now)) },
			"stood": func(*rapid.T) { waits, sequence = false, 0; o.Stood() },
			"configure": func(t *rapid.T) {
				o.Configured(&healthv1.Configuration{Generation: rapid.Int64().Draw(t, "generation")})
			},
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 1500).Draw(t, "ms")) * time.Millisecond)
			},
			"acknowledge": func(t *rapid.T) {
				s := rapid.Uint64Range(0, sequence+1).Draw(t, "sequence")
				if got, _ := o.Acknowledged(ok(s)); got && (!waits || s != sequence) {
					t.Fatalf("%d counts, sent was %d (waiting: %v)", s, sequence, waits)
				}
				waits = waits && s != sequence
			},
			"send": func(t *rapid.T) {
				r, sent := o.Next(now)
				if !sent {
					return
				}
				sequence++
				limit := r.GetTimeout().AsDuration()
				if at := r.GetPlugins()[0].GetLastChecked().AsTime(); waits || r.GetSequence() != sequence || !at.Equal(newest) ||
					limit <= 0 || limit > timing().WriteTimeout || now.Add(limit).After(newest.Add(timing().CadenceMin())) {
					t.Fatalf("at %v of %v: %v (waiting: %v)", now, newest, r, waits)
				}
				waits = true
			},
		})
	})
}
