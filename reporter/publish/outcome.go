package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kmsharness/kmsharness/contract"
)

// Outcome classifies a write, for metrics and logs.
type Outcome string

const (
	Applied     Outcome = "applied"
	Missing     Outcome = "missing"     // the CR does not exist
	Rejected    Outcome = "rejected"    // the API server will not take this apply from us: invalid, forbidden, conflict
	Failed      Outcome = "failed"      // any other answer of the API server
	TimedOut    Outcome = "timeout"     // no answer within the write deadline
	Unreachable Outcome = "unreachable" // no connection to the API server
)

// Outcomes are all of them, so that each has its counter from the start.
func Outcomes() []Outcome {
	return []Outcome{Applied, Missing, Rejected, Failed, TimedOut, Unreachable}
}

// OutcomeOf classifies the error of Apply.
func OutcomeOf(err error) Outcome {
	var answer apierrors.APIStatus
	var netErr net.Error
	switch {
	case err == nil:
		return Applied
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return TimedOut
	case apierrors.IsNotFound(err):
		return Missing
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsConflict(err):
		return Rejected
	case errors.As(err, &answer):
		return Failed
	}
	return Unreachable
}

// Transition is the lastTransitionTime of a node's condition. It is required and must not move, also not across a
// restart, so it is read from the condition on the CR, once, before the first write. The zero value is not known yet.
type Transition struct {
	at      time.Time
	refused time.Time // since when the CR may not be read; zero while it may
}

// TransitionAt is one that is known.
func TransitionAt(at time.Time) Transition { return Transition{at: at} }

// Known is the time; ok is false until the CR was read.
func (t *Transition) Known() (at time.Time, ok bool) { return t.at, !t.at.IsZero() }

// startingUp is far more than an API server needs from its first answer until it knows who may do what, and far less than a
// report may be missing for.
const startingUp = 5 * time.Second

// Read takes the answer to a read of the CR at now: its body, or the error and its HTTP status (0: there was no answer).
//
// When the CR cannot be read, this tick's result is dropped: an API server that does not answer a get would not take the
// apply either, and a guess would move the time. The one exception is an API server that answers but does not allow
// the get: waiting would not help, and a report with a moved time is worth more than none. A refusal is believed after a
// while only, because an API server that has just started allows nothing until it has read who may do what.
func (t *Transition) Read(node string, body []byte, code int, err error, now time.Time) error {
	if err == nil {
		t.at = transitionIn(body, contract.ConditionType(node), now)
		return nil
	}
	switch {
	case code != http.StatusForbidden && code != http.StatusMethodNotAllowed:
		t.refused = time.Time{}
	case t.refused.IsZero():
		t.refused = now
	case now.Sub(t.refused) > startingUp:
		t.at = now
		return nil
	}
	return fmt.Errorf("read the lastTransitionTime to keep: %w", err)
}

// transitionIn finds the time since which the condition is True; now if it is not, or if its time cannot be read.
func transitionIn(cr []byte, conditionType string, now time.Time) time.Time {
	var seen struct {
		Status struct {
			Conditions []condition `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(cr, &seen); err != nil {
		return now
	}
	for _, c := range seen.Status.Conditions {
		if c.Type != conditionType || c.Status != contract.ReporterConditionStatus {
			continue
		}
		if at, err := time.Parse(time.RFC3339, c.LastTransitionTime); err == nil && !at.IsZero() {
			return at
		}
	}
	return now
}
