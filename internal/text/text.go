// Package text has small words for people: counts and durations.
package text

import (
	"fmt"
	"time"
)

// Count is "1 scenario", "2 scenarios".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Short is a duration without needless digits.
func Short(d time.Duration) string {
	switch size := d.Abs(); {
	case size < 10*time.Millisecond:
		return d.Round(time.Microsecond).String()
	case size < 10*time.Second:
		return d.Round(time.Millisecond).String()
	}
	return Tenths(d).String()
}

// Tenths is a duration in tenths of a second: what a person reads of how long something took.
func Tenths(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
