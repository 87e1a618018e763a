package publish

import (
	"context"
	"errors"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
