package page

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/result"
)

// Failure is one thing that was not as it should be, in words.
type Failure struct {
	result.Failure
	Excused string
	Mark    int // in the timeline; -1 for none
}

// Failures are those of the result, and what a scenario excuses.
func (r Run) Failures() []Failure {
	var all []Failure
	for _, f := range r.Result.Failures {
		all = append(all, r.failure(f))
	}
	if r.Verdict == nil {
		return all
	}
	for _, i := range r.Verdict.Invariants {
		if i.Status == check.Excused && len(i.Violations) > 0 {
			x := i.Violations[0]
			f := r.failure(result.Failure{ID: i.ID, Rule: x.Rule, At: x.At, Offset: x.Offset, Where: x.Node, Seen: x.Seen, Allowed: x.Allowed, More: i.Count - 1})
			f.Excused = safe(i.Excuse)
			all = append(all, f)
		}
	}
	return all
}

func (r Run) failure(f result.Failure) Failure {
	out := Failure{Failure: f, Mark: r.markOf(f)}
	out.Seen, out.Allowed, out.Because = safe(f.Seen), safe(f.Allowed), safe(f.Because)
	return out
}

// markOf is the first mark of what failed.
func (r Run) markOf(f result.Failure) int {
	at := float64(f.Offset.Microseconds()) / 1000
	found := -1
	for i, m := range r.Marks {
		if m.ID != f.Code() {
			continue
		}
		if found < 0 {
			found = i
		}
		if diff := m.At - at; diff < 1 && diff > -1 {
			return i
		}
	}
	return found
}

// First is the failure that is the cause of the others, or came first.
func (r Run) First() *Failure {
	if len(r.Result.Failures) == 0 {
		return nil
	}
	out := r.failure(r.Result.Failures[0])
	out.Mark = -1 // the button is with the timeline
	return &out
}

func (r Run) MoreFailures() int { return len(r.Result.Failures) - 1 }

// seconds for people.
func seconds(d time.Duration) string { return d.Round(time.Millisecond).String() }
