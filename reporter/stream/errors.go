package stream

import (
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
)

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
