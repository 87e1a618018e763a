package scenario

import (
	"fmt"
	"maps"
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
	d.value, err = d.Resolve(t)
	d.resolved = err == nil && !d.IsZero()
	return err
}

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. The validation reports what is no duration.
func (d *Duration) UnmarshalText(text []byte) error {
	*d = D(string(text))
	return nil
}

func (d Duration) IsZero() bool { return d.Text == "" }

func D(text string) Duration { return Duration{Text: text} }

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
		if sum += v; sum > MaxDuration {
			return 0, fmt.Errorf("duration %s: is %v, at most %v is allowed", quote(d.Text), sum, MaxDuration)
		}
	}
	return sum, nil
}

// In is Resolve for a duration of a valid scenario.
func (d Duration) In(t contract.Timing) time.Duration {
	v, _ := d.Resolve(t) // the validation has refused what is no duration
	return v
}

// MaxDuration bounds one step: longer than any stage of the sources' recovery tables, short enough that a typing
// error does not stop a CI job for a day.
const MaxDuration = time.Hour

// term is a multiple of a unit, or a word alone.
var term = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)?\s*([A-Za-z]*)$`)

// unitsOf are what a number can stand before.
func unitsOf(t contract.Timing) map[string]time.Duration {
	return map[string]time.Duration{"I": t.Interval, "J": t.Jitter, "R": t.ProbeTimeout, "W": t.WriteTimeout, "A": t.AggregatorLatency,
		"ms": time.Millisecond, "s": time.Second, "m": time.Minute}
}

// boundsOf are the contract's bounds by name.
func boundsOf(t contract.Timing) map[string]time.Duration {
	return map[string]time.Duration{"detection": t.DetectionBound(), "recovery": t.RecoveryBound(), "staleness": t.StaleBound(), "cleanup": t.CleanupBound()}
}

func resolveTerm(text string, t contract.Timing) (time.Duration, error) {
	if d, ok := boundsOf(t)[text]; ok {
		return d, nil
	}
	m := append(term.FindStringSubmatch(text), "", "", "") // what does not match has no unit
	unit, known := unitsOf(t)[m[2]]
	switch {
	case !known:
		return 0, fmt.Errorf("expected a number and a unit of I, J, R, W, A, ms, s or m, or detection, recovery, staleness, cleanup%s", suggestDuration(text, m[1], m[2]))
	case m[1] == "" && slices.Contains([]string{"ms", "s", "m"}, m[2]):
		return 0, fmt.Errorf("a number is missing before %s", m[2])
	case m[1] == "":
		return unit, nil
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, fmt.Errorf("%q is out of range, at most %v is allowed", text, MaxDuration)
	}
	d := n * float64(unit)
	if d > float64(MaxDuration) {
		return 0, fmt.Errorf("%s is longer than %v, the most that is allowed", text, MaxDuration)
	}
	return time.Duration(d), nil
}

// suggestDuration guesses what was meant: a unit in the wrong case or written out, a missing unit, a misspelt bound.
func suggestDuration(text, number, unit string) string {
	if number == "" {
		return suggest.DidYouMean(text, slices.Sorted(maps.Keys(boundsOf(contract.Timing{}))))
	}
	units := map[string]string{"": "s", "i": "I", "j": "J", "r": "R", "w": "W", "a": "A", "sec": "s", "secs": "s", "second": "s",
		"seconds": "s", "min": "m", "mins": "m", "minute": "m", "minutes": "m", "interval": "I", "intervals": "I", "msec": "ms", "millis": "ms"}
	if u, ok := units[strings.ToLower(unit)]; ok {
		return fmt.Sprintf(", did you mean %q?", number+u)
	}
	return ""
}
