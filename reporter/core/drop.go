package core

import (
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// DropReason says why results were not written.
type DropReason string

const (
	// DropLate: the write could not begin within one interval of the probe deadline. The reporter was paused, or
	// starved; the next tick is due already and knows better.
	DropLate DropReason = "late"
	// DropOlder: a newer result was handed to the API server before. The wall clock was set back.
	DropOlder DropReason = "older"
)

// drop judges whether the report may still be written at now.
//
// A write that may begin has W left, so that no probe in it is ever older than contract.Timing.MaxProbeAge.
func (s State) drop(cfg Config, report contract.Report, now time.Time) DropReason {
	switch {
	case now.Sub(s.tick) > cfg.Timing.MaxProbeAge()-cfg.Timing.WriteTimeout:
		return DropLate
	case report.Oldest().Before(s.newest) && !disbelieved(report.Oldest(), s.newest, cfg.Timing.Interval):
		return DropOlder
	}
	return ""
}

// disbelieved says that at wall-clock time now readers call lastChecked skewed anyway. Only then may an older one
// replace it: after a clock that ran far ahead is set right, the truth must not wait until the clock gets there again.
func disbelieved(now, lastChecked time.Time, interval time.Duration) bool {
	return contract.FreshnessAt(now, lastChecked, interval) == contract.Skewed
}

func newest(report contract.Report) time.Time {
	var newest time.Time
	for _, e := range report.Entries {
		if e.LastChecked.After(newest) {
			newest = e.LastChecked
		}
	}
	return newest
}
