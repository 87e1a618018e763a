package scenario

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// Duration is a sum of multiples of the contract's letters and of real time: "4I + A", "2.5I", "500ms", or one of the
// contract's bounds by name. It is kept as text and resolved with the run's timing, so that one scenario runs with an
// interval of 1 s on processes and of 30 s on a simulator.
type Duration struct {
	Text string
	Pos  Position
}

// IsZero says whether nothing was written.
func (d Duration) IsZero() bool { return d.Text == "" }

// D is a Duration written in Go.
func D(text string) Duration { return Duration{Text: text} }

var term = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)?\s*(I|J|R|W|A|ms|s|m)$`)

// Resolve computes the duration for a timing. Errors name the text and what is allowed.
func (d Duration) Resolve(t contract.Timing) (time.Duration, error) {
	text := strings.TrimSpace(d.Text)
	switch text {
	case "":
		return 0, nil
	case "detection":
		return t.DetectionBound(), nil
	case "recovery":
		return t.RecoveryBound(), nil
	case "staleness":
		return t.StaleBound(), nil
	case "cleanup":
		return t.CleanupBound(), nil
	}
	var sum time.Duration
	for _, part := range strings.Split(text, "+") {
		v, err := resolveTerm(strings.TrimSpace(part), t)
		if err != nil {
			return 0, fmt.Errorf("duration %q: %w", d.Text, err)
		}
		sum += v
	}
	if sum > MaxDuration {
		return 0, fmt.Errorf("duration %q: is %v, at most %v is allowed", d.Text, sum, MaxDuration)
	}
	return sum, nil
}

// MaxDuration bounds one step: longer than any stage of the sources' recovery tables, short enough that a typing
// error does not stop a CI job for a day.
const MaxDuration = time.Hour

func resolveTerm(text string, t contract.Timing) (time.Duration, error) {
	m := term.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q: expected a number and a unit of I, J, R, W, A, ms, s or m, or detection, recovery, staleness, cleanup", text)
	}
	n := 1.0
	if m[1] != "" {
		var err error
		if n, err = strconv.ParseFloat(m[1], 64); err != nil {
			return 0, fmt.Errorf("%q: %w", text, err)
		}
	} else if m[2] == "ms" || m[2] == "s" || m[2] == "m" {
		return 0, fmt.Errorf("%q: a number is missing before %s", text, m[2])
	}
	return time.Duration(n * float64(unit(m[2], t))), nil
}

func unit(name string, t contract.Timing) time.Duration {
	switch name {
	case "I":
		return t.Interval
	case "J":
		return t.Jitter
	case "R":
		return t.ProbeTimeout
	case "W":
		return t.WriteTimeout
	case "A":
		return t.AggregatorLatency
	case "ms":
		return time.Millisecond
	case "s":
		return time.Second
	default:
		return time.Minute
	}
}
