package contract

import "time"

// StaleIntervals is how many intervals a report may age. It is derived, never configured apart: three lost writes
// are tolerated, the fourth is news.
const StaleIntervals = 4

// Freshness of a report at an instant.
type Freshness string

const (
	Fresh  Freshness = "fresh"
	Stale  Freshness = "stale"
	Skewed Freshness = "skewed" // checked in the future, beyond what jitter and rounding explain
)

// StaleAfter is the age beyond which a report is stale.
func StaleAfter(interval time.Duration) time.Duration { return StaleIntervals * interval }

// FreshnessAt judges a lastChecked at now. Both bounds are inclusive: exactly 4 intervals old is fresh, exactly one
// interval ahead is fresh.
func FreshnessAt(now, lastChecked time.Time, interval time.Duration) Freshness {
	age := now.Sub(lastChecked)
	switch {
	case age < -interval:
		return Skewed
	case age > StaleAfter(interval):
		return Stale
	default:
		return Fresh
	}
}
