package check

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// TestOwnCauses: that an API server has not checked further rules is no cause, unless it names no other.
func TestOwnCauses(t *testing.T) {
	remark := history.Cause{Field: "<nil>", Message: notChecked}
	root := history.Cause{Field: "<nil>", Message: "Invalid value: no more than one"}
	required := history.Cause{Field: "status.a", Reason: "FieldValueRequired", Message: "Required value"}
	of := func(causes ...history.Cause) request {
		return request{Request: &history.Request{Code: 422, Reason: "Invalid", Causes: causes}}
	}
	if a, b := of(required, remark), of(required); a.refusal() != b.refusal() || a.rule() != b.rule() {
		t.Errorf("%q and %q, %q and %q", a.refusal(), b.refusal(), a.rule(), b.rule())
	}
	if a, b := of(required, root, remark), of(required); a.refusal() == b.refusal() || a.rule() == b.rule() {
		t.Errorf("a rule of the whole object is lost: %q, %q", a.refusal(), a.rule())
	}
	if got := of(remark).refusal(); got != `422 Invalid: <nil>: "some validation rules were not checked"` {
		t.Errorf("alone: %s", got)
	}
}

// TestCrowdedOut: others that fill the list are no mistake of the reporter whose items no longer fit, as long as they do not fit. A reporter that fills it itself, or
// has another mistake beside, is not excused.
func TestCrowdedOut(t *testing.T) {
	tooMany := history.Cause{Field: "status.encryptionStatus.healthReports", Reason: string(metav1.CauseTypeTooMany), Message: "Too many: 201: must have at most 200 items"}
	remark := history.Cause{Field: "<nil>", Message: notChecked}
	enum := history.Cause{Field: "status.encryptionStatus.healthReports[0].status", Reason: "FieldValueNotSupported"}
	of := func(items int, causes ...history.Cause) request {
		return request{Request: &history.Request{Code: 422, Reason: "Invalid", Causes: causes}, write: true, body: body{ok: true, typed: make([]contract.TypedReport, items)}}
	}
	for name, tt := range map[string]struct {
		r    request
		want bool
	}{
		"others have filled it":        {of(2, tooMany, remark), true},
		"itself has filled it":         {of(contract.MaxTypedReports+1, tooMany, remark), false},
		"another mistake beside":       {of(2, tooMany, enum), false},
		"another mistake":              {of(2, enum), false},
		"what it wrote is not known":   {request{Request: &history.Request{Code: 422, Causes: []history.Cause{tooMany}}}, false},
		"nothing that could not fit":   {of(0, tooMany), false},
		"a refusal that names nothing": {of(2), false},
	} {
		if got := tt.r.crowdedOut(); got != tt.want || tt.r.invalid() == tt.want {
			t.Errorf("%s: crowded out %v, invalid %v", name, got, tt.r.invalid())
		}
	}

	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	list := func(s, others int) snapshot {
		o := &history.Object{HealthReports: []contract.TypedReport{{NodeName: "cp-1", KeyID: "1"}}}
		for range others {
			o.HealthReports = append(o.HealthReports, contract.TypedReport{NodeName: "elsewhere"})
		}
		return snapshot{at: at(s), object: o}
	}
	v := noFacts()
	v.complete, v.objects.crs = span{at(0), at(100)}, []snapshot{list(1, 199), list(20, 199), list(30, 198), list(40, 5)}
	for _, s := range []int{10, 15, 50} {
		r := of(2, tooMany)
		r.node, r.received, r.at = "cp-1", at(s), at(s).Add(time.Millisecond)
		v.requests.requestsOf["cp-1"] = append(v.requests.requestsOf["cp-1"], len(v.requests.all))
		v.requests.all = append(v.requests.all, r)
	}
	// The one at 50 was refused although they would have fitted at 40: until the next state is seen, the API server is believed.
	if got := v.objects.crowded("cp-1"); len(got) != 2 || got[0] != (span{at(10), at(30)}) || got[1].from != at(50) {
		t.Errorf("crowded: %v, expected until there is room for both items", got)
	}
}

// TestUndeclared: that the CRD has no field for the reports is no mistake of who writes them where the run says so, and only there.
func TestUndeclared(t *testing.T) {
	refused := request{Request: &history.Request{Code: 500, Verb: "apply", User: contract.ReporterIdentity("cp-1"), FieldManager: "m", Message: "failed to create typed patch object (/cluster; operator.openshift.io/v1, Kind=KubeAPIServer): " +
		".status.encryptionStatus: field not declared in schema"}, node: "cp-1", write: true}
	for _, tt := range []struct {
		run      history.Run
		violated bool
	}{
		{history.Run{Contract: history.FormHealthReports, CRDs: history.CRDsDefault}, false},
		{history.Run{Contract: history.FormHealthReports}, true},
		{history.Run{Contract: history.FormConditions, CRDs: history.CRDsDefault}, true},
	} {
		v := noFacts()
		v.run, v.requests.all = tt.run, []request{refused}
		f := judgeAccepted(v)
		if violated := len(f.Violations) > 0; violated != tt.violated {
			t.Errorf("%+v: violated %v", tt.run, violated)
		}
	}
}

// TestTextsOfRefusals: writes that one rule refuses may be told different things, of which the first few are shown.
func TestTextsOfRefusals(t *testing.T) {
	var all []any
	for _, text := range []string{"too long: 1100", "too long: 2200", "too long: 1100", "too long: 3300", "too long: 4400"} {
		all = append(all, byReporter(refusedApply("Invalid", history.Cause{Field: "status.a", Reason: "FieldValueTooLong", Message: text}), 422))
	}
	for _, r := range Run(extra(all...)()).Invariants {
		if r.ID != AcceptedID {
			continue
		}
		seen := r.Violations[0].Seen
		for text, shown := range map[string]bool{"1100": true, "2200": true, "3300": true, "4400": false} {
			if strings.Contains(seen, text) != shown {
				t.Errorf("%s: shown %v, expected %v: %s", text, !shown, shown, seen)
			}
		}
	}
}
