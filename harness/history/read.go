package history

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/internal/input"
)

// MaxLineBytes bounds one event of a saved history. The largest legitimate one is an object of 200 typed reports
// with every text at its limit.
const MaxLineBytes = 16 << 20

// Read reads a saved history. An unknown schema, a line that is not an event and a payload that does not fit its
// kind are errors that name the line.
func Read(r io.Reader) ([]Event, error) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, 64<<10), MaxLineBytes)
	var events []Event
	states := map[string]*Object{}
	line := 1
	for ; scanner.Scan(); line++ {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		var e Event
		if err := json.Unmarshal(scanner.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("line %d: not a history event: %w", line, err)
		}
		if err := e.validate(len(events) == 0); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if o := e.Object; o != nil {
			name := e.APIServer + " " + o.Resource + " " + o.Name
			o.Share(states[name])
			states[name] = o
		}
		events = append(events, e)
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("line %d: read at most %d bytes of an event: %w", line, MaxLineBytes, err)
	}
	if len(events) == 0 {
		return nil, errors.New("history is empty: expected a run event on line 1")
	}
	return events, nil
}

// ReadFile is Read of a file; errors name it.
func ReadFile(path string) ([]Event, error) {
	f, err := input.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	defer f.Close()
	events, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return events, nil
}

// InTime is the events in the order in which they happened: events itself if that is its order, otherwise a copy.
func InTime(events []Event) []Event {
	order := func(a, b Event) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Seq, b.Seq)) }
	if slices.IsSortedFunc(events, order) {
		return events
	}
	return slices.SortedStableFunc(slices.Values(events), order)
}

func (e Event) validate(first bool) error {
	if first && (e.Kind != KindRun || e.Run == nil) {
		return fmt.Errorf("first event is %q, expected %q", e.Kind, KindRun)
	}
	if first && e.Run.Schema != Schema {
		return fmt.Errorf("schema %q, this program reads %q", e.Run.Schema, Schema)
	}
	if !e.HasPayload() {
		return fmt.Errorf("event %d: kind %q without its payload, or unknown", e.Seq, e.Kind)
	}
	if e.Kind == KindRun {
		return e.Run.validate()
	}
	if o := e.Object; o != nil && (slices.Contains(o.Conditions, nil) || slices.Contains(o.HealthReports, nil)) {
		return fmt.Errorf("event %d: a condition or report is null", e.Seq)
	}
	return nil
}

// Bounds of the times of a run. The checker divides by the interval and counts the intervals of a run.
const (
	minInterval = time.Millisecond
	maxInterval = 24 * time.Hour
)

// validate returns an error for timing with which no history can be judged.
func (r *Run) validate() error {
	if r.Timing.Interval < minInterval || r.Timing.Interval > maxInterval {
		return fmt.Errorf("timing: interval %v: expected %v to %v", r.Timing.Interval, minInterval, maxInterval)
	}
	if err := r.Timing.Validate(); err != nil {
		return fmt.Errorf("timing: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if r.Tolerance < 0 || r.Tolerance > maxInterval {
		return fmt.Errorf("tolerance %v: expected 0 to %v", r.Tolerance, maxInterval)
	}
	if r.TakeoverAllowance < 0 || r.TakeoverAllowance > maxInterval {
		return fmt.Errorf("takeoverAllowance %v: expected 0 to %v", r.TakeoverAllowance, maxInterval)
	}
	return nil
}

// HasPayload reports whether the payload that the event's kind names is there.
func (e *Event) HasPayload() bool {
	_, known := fieldOf[e.Kind]
	return known && !e.payload(e.Kind).IsNil()
}
