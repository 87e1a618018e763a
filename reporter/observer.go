package reporter

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/metrics"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// Observer tells people and Prometheus what a reporter does. It logs a change once, a failed write each time (which
// is once per interval at most), and everything else only at debug level. Texts of plugins and servers are made safe.
//
// Its methods are called by the loop; only Alive may be called from elsewhere.
type Observer struct {
	log     *slog.Logger
	metrics *metrics.Metrics
	last    map[string]contract.Entry // by keyID
	outcome publish.Outcome           // of the last write
	tick    atomic.Pointer[time.Time] // begin of the last tick, with its monotonic reading: a clock that is set is no sign of life or death
}

// NewObserver logs to log and counts in m.
func NewObserver(log *slog.Logger, m *metrics.Metrics) *Observer {
	return &Observer{log: log, metrics: m, last: map[string]contract.Entry{}}
}

// TickBegan notes that the loop is alive.
func (o *Observer) TickBegan(now time.Time) { o.tick.Store(&now) }

// Alive says whether a tick began within the last limit, or none was due yet.
func (o *Observer) Alive(now time.Time, limit time.Duration) bool {
	tick := o.tick.Load()
	return tick == nil || now.Sub(*tick) <= limit
}

// Probed notes one probe and what it means.
func (o *Observer) Probed(r core.Result, e contract.Entry) {
	o.metrics.Probed(r, e)
	level := slog.LevelDebug
	if before, known := o.last[e.KeyID]; !known || before.Status != e.Status || (e.KEKID != "" && before.KEKID != e.KEKID) {
		level = levelOf(e.Status)
	}
	o.last[e.KeyID] = e
	o.log.Log(context.Background(), level, "probed plugin", "keyID", e.KeyID, "status", string(e.Status), "kekID", contract.SafeText(e.KEKID, 128),
		"detail", e.Detail, "took", r.Duration.String())
}

func levelOf(s contract.Status) slog.Level {
	if s == contract.StatusHealthy {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// Wrote notes one write that ended at now.
func (o *Observer) Wrote(err error, took time.Duration, now time.Time) {
	outcome := publish.OutcomeOf(err)
	o.metrics.Wrote(outcome, took, now)
	switch {
	case err != nil:
		o.log.Error("report was not written; the next interval brings a new one", "outcome", string(outcome),
			"took", took.String(), "error", contract.SafeDetail(err.Error()))
	case o.outcome != publish.Applied:
		o.log.Info("report written", "took", took.String())
	default:
		o.log.Debug("report written", "took", took.String())
	}
	o.outcome = outcome
}

// Waiting notes results that were dropped, if any were.
func (o *Observer) Waiting(dropped core.DropReason) {
	if dropped == "" {
		return
	}
	o.metrics.Dropped(dropped)
	o.log.Warn("results dropped instead of written", "reason", string(dropped))
}
