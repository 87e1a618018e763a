package facts

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// TestCrowded: the list has no place for a reporter's items from its refusal until they would fit.
func TestCrowded(t *testing.T) {
	tooMany := history.Cause{Field: "status.encryptionStatus.healthReports", Reason: string(metav1.CauseTypeTooMany), Message: "Too many: 201: must have at most 200 items"}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	list := func(s, others int) Snapshot {
		o := &history.Object{HealthReports: []*contract.TypedReport{{NodeName: "cp-1", KeyID: "1"}}}
		for range others {
			o.HealthReports = append(o.HealthReports, &contract.TypedReport{NodeName: "elsewhere"})
		}
		return Snapshot{Span: span.New(at(s), at(100)), Object: o}
	}
	v := New(nil)
	v.Reporters.period, v.CR.Snapshots = span.New(at(0), at(100)), []Snapshot{list(1, 199), list(20, 199), list(30, 198), list(40, 5)}
	for _, s := range []int{10, 15, 50} {
		v.Requests.add(&Request{Request: &history.Request{Code: 422, Reason: "Invalid", Causes: []history.Cause{tooMany}}, Node: "cp-1", Write: true, Received: at(s), At: at(s).Add(time.Millisecond),
			Body: Body{Known: true, Typed: make([]contract.TypedReport, 2)}})
	}
	// The one at 50 was refused although they would have fitted at 40: until the next state is seen, the API server is believed.
	if got := v.Reporters.crowded("cp-1"); len(got) != 2 || got[0] != span.New(at(10), at(30)) || got[1].From != at(50) {
		t.Errorf("crowded: %v, expected until there is room for both items", got)
	}
}
