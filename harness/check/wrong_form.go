package check

import (
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/history"
)

// wrongForm is the form of every report that the reporters wrote or tried to write, if that is another one than the run is about.
func wrongForm(v *facts.Facts) string {
	conditions, typed := false, false
	for node := range v.Reports {
		for _, s := range v.Reports.Own(node) {
			conditions, typed = conditions || s.Value.Condition != nil, typed || len(s.Value.Typed) > 0
		}
	}
	for _, r := range v.Requests.All { // those that were refused: the CRD may not have the field
		if r.Node != "" && r.Write && r.IsApply() {
			conditions, typed = conditions || len(r.Body.Conditions) > 0, typed || len(r.Body.Typed) > 0
		}
	}
	switch {
	case v.Run.Contract == history.FormConditions && typed && !conditions:
		return history.FormHealthReports
	case v.Run.Contract == history.FormHealthReports && conditions && !typed:
		return history.FormConditions
	}
	return ""
}
