package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/suggest"
)

// Duration is a sum of multiples of the contract's letters and of real time: "4I + A", "2.5I", "500ms", or one of the
// contract's bounds by name. It is kept as text and resolved with the run's timing, so that one scenario runs with an
// interval of 1 s on processes and of 30 s as in production.
type Duration struct {
	Text string
	// resolved and value: after resolve.
	resolved bool
	value    time.Duration
}

// Exactly is a duration of real time, resolved.
func Exactly(d time.Duration) Duration {
	return Duration{Text: d.String(), resolved: true, value: d}
}

// Value is the duration of an action that was resolved; 0 before.
func (d Duration) Value() time.Duration { return d.value }

// String is what was written, or the value after it was resolved.
func (d Duration) String() string {
	if d.resolved {
		return d.value.String()
	}
	return d.Text
}

func (d *Duration) resolve(t contract.Timing) (err error) {
	if d.IsZero() || d.resolved {
		return nil
	}
	d.value, err = d.Resolve(t)
	d.resolved = err == nil
	return err
}

func (d Duration) IsZero() bool { return d.Text == "" }

func D(text string) Duration { return Duration{Text: text} }

var term = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)?\s*(I|J|R|W|A|ms|s|m)$`)

// Resolve computes the duration for a timing. Errors name the text and what is allowed.
func (d Duration) Resolve(t contract.Timing) (time.Duration, error) {
	text := strings.TrimSpace(d.Text)
	if text == "" || d.resolved {
		return d.value, nil
	}
	var sum time.Duration
	for _, part := range strings.Split(text, "+") {
		v, err := resolveTerm(strings.TrimSpace(part), t)
		if err != nil {
			return 0, fmt.Errorf("duration %s: %w", quote(d.Text), err)
		}
		sum += v
		if sum <= MaxDuration {
			continue
		}
		return 0, fmt.Errorf("duration %s: is %v, at most %v is allowed", quote(d.Text), sum, MaxDuration)
	}
	return sum, nil
}

// MaxDuration bounds one step: longer than any stage of the sources' recovery tables, short enough that a typing
// error does not stop a CI job for a day.
const MaxDuration = time.Hour

// bound is one of the contract's bounds by name.
func bound(name string, t contract.Timing) (time.Duration, bool) {
	switch name {
	case "detection":
		return t.DetectionBound(), true
	case "recovery":
		return t.RecoveryBound(), true
	case "staleness":
		return t.StaleBound(), true
	case "cleanup":
		return t.CleanupBound(), true
	}
	return 0, false
}

func resolveTerm(text string, t contract.Timing) (time.Duration, error) {
	if d, ok := bound(text, t); ok {
		return d, nil
	}
	m := term.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("expected a number and a unit of I, J, R, W, A, ms, s or m, or detection, recovery, staleness, cleanup%s", suggestDuration(text))
	}
	n := 1.0
	if m[1] != "" {
		var err error
		if n, err = strconv.ParseFloat(m[1], 64); err != nil {
			return 0, fmt.Errorf("%q is out of range, at most %v is allowed", text, MaxDuration)
		}
	} else if m[2] == "ms" || m[2] == "s" || m[2] == "m" {
		return 0, fmt.Errorf("a number is missing before %s", m[2])
	}
	d := n * float64(unit(m[2], t))
	if d > float64(MaxDuration) {
		return 0, fmt.Errorf("%s is longer than %v, the most that is allowed", text, MaxDuration)
	}
	return time.Duration(d), nil
}

// number begins what someone may have meant as a duration.
var number = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)?\s*([A-Za-z]*)$`)

// suggestDuration guesses what was meant: a unit in the wrong case or written out, a missing unit, a misspelt bound.
func suggestDuration(text string) string {
	m := number.FindStringSubmatch(text)
	switch {
	case m == nil:
		return ""
	case m[1] == "":
		return suggest.DidYouMean(text, []string{"detection", "recovery", "staleness", "cleanup"})
	}
	units := map[string]string{"": "s", "i": "I", "j": "J", "r": "R", "w": "W", "a": "A", "sec": "s", "secs": "s", "second": "s",
		"seconds": "s", "min": "m", "mins": "m", "minute": "m", "minutes": "m", "interval": "I", "intervals": "I", "msec": "ms", "millis": "ms"}
	if u, ok := units[strings.ToLower(m[2])]; ok {
		return fmt.Sprintf(", did you mean %q?", m[1]+u)
	}
	return ""
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

// seconds is a duration of real time alone.
var seconds = regexp.MustCompile(`^([0-9]+)(s|m)$`)

// Patient gives the scenario with times within which something is expected multiplied, where they are of real time: those do not follow from the
// contract, and a slower program than this project's may need more. factor is 1 or more.
func (s *Scenario) Patient(factor int) *Scenario {
	copied := *s
	copied.Steps = patient(s.Steps, factor)
	return &copied
}

func patient(steps []Step, factor int) []Step {
	out := slices.Clone(steps)
	for i := range out {
		s := &out[i]
		s.Parallel = patient(s.Parallel, factor)
		if s.Repeat != nil {
			repeat := *s.Repeat
			repeat.Steps = patient(repeat.Steps, factor)
			s.Repeat = &repeat
		}
		if s.Expect == nil || s.Expect.Mode != ModeWithin {
			continue
		}
		if m := seconds.FindStringSubmatch(s.Expect.Bound.Text); m != nil {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				continue // too large to be valid
			}
			expect := *s.Expect
			expect.Bound = D(strconv.Itoa(n*factor) + m[2])
			s.Expect = &expect
		}
	}
	return out
}
