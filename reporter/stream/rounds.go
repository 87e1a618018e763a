package stream

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
)

// Bounds of the wait after every replica of the aggregator was tried in vain. It doubles from one to the other. The wait adds to the time after which
// a report arrives that its reporter sends again, so it is far below an interval.
const (
	RetryMin = 50 * time.Millisecond
	RetryMax = 800 * time.Millisecond
)

// Rounds goes round the replicas of the aggregator, as a headless service lists them. The zero value begins with the first one.
type Rounds struct {
	next  int
	tried int // since a stream stood
	wait  time.Duration
}

// Next is the index of the replica to try, of as many as there are; -1 if there are none.
func (r *Rounds) Next(replicas int) int {
	if replicas == 0 {
		return -1
	}
	r.next %= replicas
	return r.next
}

// Failed notes that a replica could not be reached or refused the stream, of as many as there are, and returns how long to wait before the next one is tried:
// not at all until each was tried.
func (r *Rounds) Failed(replicas int) time.Duration {
	r.next++
	if r.tried++; r.tried < replicas {
		return 0
	}
	r.tried = 0
	r.wait = min(max(2*r.wait, RetryMin), RetryMax)
	return r.wait
}

// Stood notes that a stream stood.
func (r *Rounds) Stood() { r.tried, r.wait = 0, 0 }

// ErrNoStream is the error of a report for which no stream stood before its deadline.
var ErrNoStream = errors.New("no stream to an aggregator")

// refused is the answer of the API server to a report, as the aggregator passes it on.
type refused struct {
	code    int32
	message string
}

func errorOf(a *healthv1.Acknowledgement) error {
	if a.GetCode() == http.StatusOK {
		return nil
	}
	return &refused{a.GetCode(), a.GetMessage()}
}

// Error implements error.
func (r *refused) Error() string {
	if r.code == 0 {
		return "the aggregator could not write the report: " + r.message
	}
	return fmt.Sprintf("the aggregator could not write the report: %d: %s", r.code, r.message)
}

// Status implements apierrors.APIStatus: a reporter counts it as it counts an answer of the API server itself.
func (r *refused) Status() metav1.Status {
	reason := map[int32]metav1.StatusReason{http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusConflict: metav1.StatusReasonConflict,
		http.StatusUnprocessableEntity: metav1.StatusReasonInvalid}[r.code]
	return metav1.Status{Status: metav1.StatusFailure, Code: r.code, Reason: reason, Message: r.message}
}
