package invariants

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/history"
)

// TestOwnCauses: that an API server has not checked further rules is no cause, unless it names no other.
func TestOwnCauses(t *testing.T) {
	remark := history.Cause{Field: "<nil>", Message: facts.NotChecked}
	root := history.Cause{Field: "<nil>", Message: "Invalid value: no more than one"}
	required := history.Cause{Field: "status.a", Reason: "FieldValueRequired", Message: "Required value"}
	of := func(causes ...history.Cause) *facts.Request {
		return &facts.Request{Request: &history.Request{Code: 422, Reason: "Invalid", Causes: causes}}
	}
	if a, b := of(required, remark), of(required); refusal(a) != refusal(b) || ruleOfRefusal(a) != ruleOfRefusal(b) {
		t.Errorf("%q and %q, %q and %q", refusal(a), refusal(b), ruleOfRefusal(a), ruleOfRefusal(b))
	}
	if a, b := of(required, root, remark), of(required); refusal(a) == refusal(b) || ruleOfRefusal(a) == ruleOfRefusal(b) {
		t.Errorf("a rule of the whole object is lost: %q, %q", refusal(a), ruleOfRefusal(a))
	}
	if got := refusal(of(remark)); got != `422 Invalid: <nil>: "some validation rules were not checked"` {
		t.Errorf("alone: %s", got)
	}
}

// TestCrowdedOut: others that fill the list are no mistake of the reporter whose items no longer fit, as long as they do not fit. A reporter that fills it itself, or
// has another mistake beside, is not excused.
func TestCrowdedOut(t *testing.T) {
	tooMany := history.Cause{Field: "status.encryptionStatus.healthReports", Reason: string(metav1.CauseTypeTooMany), Message: "Too many: 201: must have at most 200 items"}
	remark := history.Cause{Field: "<nil>", Message: facts.NotChecked}
	enum := history.Cause{Field: "status.encryptionStatus.healthReports[0].status", Reason: "FieldValueNotSupported"}
	of := func(items int, causes ...history.Cause) *facts.Request {
		return &facts.Request{Request: &history.Request{Code: 422, Reason: "Invalid", Causes: causes}, Write: true, Body: facts.Body{Known: true, Typed: make([]contract.TypedReport, items)}}
	}
	for name, tt := range map[string]struct {
		r    *facts.Request
		want bool
	}{
		"others have filled it":        {of(2, tooMany, remark), true},
		"itself has filled it":         {of(contract.MaxTypedReports+1, tooMany, remark), false},
		"another mistake beside":       {of(2, tooMany, enum), false},
		"another mistake":              {of(2, enum), false},
		"what it wrote is not known":   {&facts.Request{Request: &history.Request{Code: 422, Causes: []history.Cause{tooMany}}}, false},
		"nothing that could not fit":   {of(0, tooMany), false},
		"a refusal that names nothing": {of(2), false},
	} {
		if got := tt.r.CrowdedOut(); got != tt.want || invalid(tt.r) == tt.want {
			t.Errorf("%s: crowded out %v, invalid %v", name, got, invalid(tt.r))
		}
	}
}

// TestUndeclared: that the CRD has no field for the reports is no mistake of who writes them where the run says so, and only there.
func TestUndeclared(t *testing.T) {
	refused := facts.Request{Request: &history.Request{Code: 500, Verb: "apply", User: contract.ReporterIdentity("cp-1"), FieldManager: "m", Message: "failed to create typed patch object (/cluster; operator.openshift.io/v1, Kind=KubeAPIServer): " +
		".status.encryptionStatus: field not declared in schema"}, Node: "cp-1", Write: true}
	for _, tt := range []struct {
		run      history.Run
		violated bool
	}{
		{history.Run{Contract: history.FormHealthReports, CRDs: history.CRDsDefault}, false},
		{history.Run{Contract: history.FormHealthReports}, true},
		{history.Run{Contract: history.FormConditions, CRDs: history.CRDsDefault}, true},
	} {
		v := facts.New(nil)
		v.Run, v.Requests.All = tt.run, []*facts.Request{&refused}
		f := judgeAccepted(v)
		if violated := len(f.Violations) > 0; violated != tt.violated {
			t.Errorf("%+v: violated %v", tt.run, violated)
		}
	}
}
