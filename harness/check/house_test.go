package check

import (
	"slices"
	"testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// otherVersion is a history in which cp-2's plugin speaks another version, and its reporter believes its ok.
func otherVersion(sourceOnly bool) []history.Event {
	events := plain(func(*world) {})()
	for n := range events {
		if c := events[n].Call; c != nil && c.Node == "cp-2" {
			v3 := *c
			v3.Version = "v3"
			events[n].Call = &v3
		}
		if r := events[n].Run; r != nil {
			run := *r
			run.SourceOnly = sourceOnly
			events[n].Run = &run
		}
	}
	return events
}

// TestHouseRules: what only this project demands fails its own programs. Of those of others it is listed.
func TestHouseRules(t *testing.T) {
	find := func(v Verdict) Result {
		for _, r := range v.Invariants {
			if r.ID == "TRUTHFUL-PROBE" {
				return r
			}
		}
		t.Fatal("no TRUTHFUL-PROBE")
		return Result{}
	}
	own, other := Run(otherVersion(false)), Run(otherVersion(true))
	if r := find(own); own.OK || r.Status != Failed || r.Count == 0 || len(r.House) > 0 || r.Violations[0].Rule != "unusable-ok" || r.Violations[0].House == "" {
		t.Errorf("of this project: %+v", r)
	}
	if r := find(other); !other.OK || r.Status != Passed || r.Count > 0 || len(r.House) == 0 {
		t.Errorf("of others: ok %v, %+v, problems %q", other.OK, r, other.Problems)
	}
}

// TestHouseExpectations: an expectation that rests on a house rule fails nobody else's program.
func TestHouseExpectations(t *testing.T) {
	for _, sourceOnly := range []bool{false, true} {
		events := plain(func(*world) {})()
		for n := range events {
			if r := events[n].Run; r != nil {
				r.SourceOnly = sourceOnly
			}
			if x := events[n].Expectation; x != nil {
				x.OK, x.House = false, true
			}
		}
		v := Run(events)
		if v.OK != sourceOnly || len(v.Expectations.House) > 0 != sourceOnly || len(v.Problems) == 0 != sourceOnly {
			t.Errorf("sources alone %v: %+v, problems %q", sourceOnly, v.Expectations, v.Problems)
		}
	}
}

// TestRulesOfViolations: each rule of a violation is one of its invariant, and sources alone excuse nothing that a source demands.
func TestRulesOfViolations(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	known := map[string]bool{}
	for _, i := range Invariants() {
		known[i.ID] = true
		for _, r := range i.Rules {
			if code := Code(i.ID, r.Code); known[code] || r.Code == "" || r.Statement == "" {
				t.Errorf("%s exists twice, or has no code or statement", code)
			} else {
				known[code] = true
			}
		}
	}
	for _, k := range knownBad() {
		events := k.build()
		var house bool
		for _, r := range Run(events).Invariants {
			for _, x := range r.Violations {
				if code := Code(r.ID, x.Rule); !known[code] {
					t.Errorf("%s: there is no rule %s", k.name, code)
				}
				house = house || r.ID == k.id && x.House != ""
			}
		}
		if house {
			continue // without the rule it may pass
		}
		for n := range events {
			if r := events[n].Run; r != nil {
				r.SourceOnly = true
			}
		}
		if v := Run(events); v.OK {
			t.Errorf("%s: passes by sources alone", k.name)
		}
	}
}

// TestWrongForm: a reporter that writes the other form is recognised; conditions of others say nothing of it.
func TestWrongForm(t *testing.T) {
	for want, form := range map[string]string{"": history.FormConditions, history.FormConditions: history.FormHealthReports} {
		events := plain(func(*world) {})()
		for n := range events {
			if r := events[n].Run; r != nil {
				r.Contract = form
			}
		}
		if got := Run(events).WrongForm; got != want {
			t.Errorf("a run about %s: wrong form %q, want %q", form, got, want)
		}
	}
}

// TestReasonsOfAnotherAggregator: an aggregator whose reasons are not this project's breaks a house rule and no other. One that is wrong besides is named for that.
func TestReasonsOfAnotherAggregator(t *testing.T) {
	renamed := func(events []history.Event) []history.Event {
		for n := range events {
			if r := events[n].Run; r != nil {
				r.SourceOnly = true
			}
			o := events[n].Object
			if o == nil {
				continue
			}
			o.Conditions = slices.Clone(o.Conditions)
			for i := range o.Conditions {
				if slices.Contains(contract.RollupTypes(), o.Conditions[i].Type) {
					o.Conditions[i].Reason = "Said" + o.Conditions[i].Reason
				}
			}
		}
		return events
	}
	good := renamed(plain(func(w *world) {
		w.at(8*sec, func(w *world) { w.fault("cp-2/1", "error") })
		w.at(16*sec, func(w *world) { w.fault("cp-2/1", "") })
	})())
	v := Run(good)
	house := false
	for _, r := range v.Invariants {
		if r.Status == Failed {
			t.Errorf("%s: %+v", r.ID, r.Violations)
		}
		house = house || len(r.House) > 0
	}
	if !house {
		t.Error("the reasons are not listed")
	}
	for _, k := range knownBad() {
		if k.id != "FALSE-ALARM" || k.name == "aggregator names the wrong reason" {
			continue
		}
		if _, violated := failedIDs(Run(renamed(k.build())))[k.id]; !violated {
			t.Errorf("%s: hides behind its reasons", k.name)
		}
	}
}
