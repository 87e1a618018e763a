package reporter

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

var start = time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)

// bench runs a Loop on a clock, a prober and a publisher that the test holds in its hands.
type bench struct {
	t       *testing.T
	clock   *clocktesting.FakeClock
	metrics *metrics.Metrics
	log     *bytes.Buffer // read it after stop only
	probe   func(ctx context.Context) []core.Result
	apply   func(core.Action) error
	writes  chan core.Action
	cancel  context.CancelFunc
	done    chan struct{}
}

func (b *bench) All(ctx context.Context) []core.Result { return b.probe(ctx) }

func (b *bench) Apply(_ context.Context, write core.Action) error {
	b.writes <- write
	return b.apply(write)
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, clock: clocktesting.NewFakeClock(start), metrics: metrics.New("cp-1", []string{"2"}), log: &bytes.Buffer{},
		writes: make(chan core.Action, 10), done: make(chan struct{}), apply: func(core.Action) error { return nil }}
	b.probe = func(context.Context) []core.Result { return []core.Result{b.result()} }
	return b
}

func (b *bench) result() core.Result {
	return core.Result{KeyID: "2", Started: b.clock.Now(), Answer: &core.Answer{Version: "v2", Healthz: "ok", KeyID: "kek-1"}}
}

func (b *bench) start() {
	ctx, cancel := context.WithCancel(b.t.Context())
	b.cancel = cancel
	loop := &Loop{
		Config: core.Config{Node: "cp-1", Timing: contract.DefaultTiming()}, Prober: b, Publisher: b, Clock: b.clock,
		Observer: NewObserver(NewLogger(b.log, "json", 0), b.metrics), Jitter: func(time.Duration) time.Duration { return 0 },
	}
	go func() { defer close(b.done); loop.Run(ctx) }()
	b.t.Cleanup(b.stop)
}

func (b *bench) stop() {
	b.cancel()
	select {
	case <-b.done:
	case <-time.After(patience):
		b.t.Error("the loop does not end")
	}
}

func (b *bench) nextWrite() core.Action {
	b.t.Helper()
	select {
	case w := <-b.writes:
		return w
	case <-time.After(patience):
		b.t.Fatal("no write")
		return core.Action{}
	}
}

// pass lets time pass once the loop waits for it.
func (b *bench) pass(d time.Duration) {
	b.t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for !b.clock.HasWaiters() {
		select {
		case <-look.C:
		case <-deadline.C:
			b.t.Fatal("the loop does not wait")
		}
	}
	b.clock.Step(d)
}

func (b *bench) scrape() string {
	w := httptest.NewRecorder()
	b.metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

func TestEveryTickIsWrittenAlthoughNothingChanged(t *testing.T) {
	b := newBench(t)
	b.start()
	for i := range 3 {
		w := b.nextWrite()
		want := start.Add(time.Duration(i) * 30 * time.Second)
		if got := w.Report.Entries[0].LastChecked; !got.Equal(want) || !w.Until.Equal(want.Add(10*time.Second)) {
			t.Fatalf("write %d: lastChecked %v until %v, expected %v", i, got, w.Until, want)
		}
		b.pass(30 * time.Second)
	}
}

func TestAFailedWriteIsNotRepeated(t *testing.T) {
	b := newBench(t)
	b.apply = func(w core.Action) error {
		if w.Report.Oldest().Equal(start) {
			return errors.New("connection\nrefused")
		}
		return nil
	}
	b.start()
	b.nextWrite()
	b.pass(30 * time.Second)
	if got := b.nextWrite().Report.Oldest(); !got.Equal(start.Add(30 * time.Second)) {
		t.Errorf("the write after a failed one carries a result of %v", got)
	}
	b.pass(0)
	b.stop()
	if text := b.scrape(); !strings.Contains(text, `outcome="unreachable"} 1`) || !strings.Contains(text, `outcome="applied"} 1`) {
		t.Errorf("writes are not counted:\n%s", text)
	}
	if !strings.Contains(b.log.String(), "connection refused") {
		t.Errorf("the failure is not in the log:\n%s", b.log)
	}
}

func TestResultsOfAPausedReporterAreDropped(t *testing.T) {
	b := newBench(t)
	first := true
	b.probe = func(context.Context) []core.Result {
		r := b.result()
		if first { // as if stopped in the middle of the probe
			b.clock.Step(time.Hour)
			first = false
		}
		return []core.Result{r}
	}
	b.start()
	if got := b.nextWrite().Report.Oldest(); !got.Equal(start.Add(time.Hour)) {
		t.Errorf("written: a result of %v", got)
	}
	b.pass(0)
	b.stop()
	if text := b.scrape(); !strings.Contains(text, `results_dropped_total{node="cp-1",reason="late"} 1`) {
		t.Errorf("the drop is not counted:\n%s", text)
	}
}

func TestShutdownInMidProbeWritesNothing(t *testing.T) {
	b := newBench(t)
	probing := make(chan struct{})
	b.probe = func(ctx context.Context) []core.Result {
		close(probing)
		<-ctx.Done()
		r := b.result()
		r.Answer, r.Failure = nil, &core.Failure{Code: "Canceled", Text: "context canceled"}
		return []core.Result{r}
	}
	b.start()
	<-probing
	b.stop()
	if len(b.writes) > 0 {
		t.Errorf("a probe that the shutdown cut off was written: %+v", <-b.writes)
	}
	if strings.Contains(b.log.String(), "probed plugin") || strings.Contains(b.scrape(), "kms_plugin_healthy{") {
		t.Errorf("a probe that the shutdown cut off was taken for a failure:\n%s", b.log)
	}
}
