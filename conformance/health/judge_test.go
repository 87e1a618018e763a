package health

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/scenarios"
)

// ran is a run of a scenario in which every claim of the suite was judged and nothing was broken.
func ran(s Suite, name, form string) Observed {
	o := Observed{Result: result.Result{Scenario: name, Form: form, Status: result.Passed}}
	o.Expectations = append(o.Expectations, Expectation{history.Expectation{ID: beforeSteps, OK: true}, at(0)})
	known := map[string]bool{}
	for _, c := range s.Checks {
		for _, claim := range c.Claims {
			for _, code := range claim.Violations {
				if id := invariantOf(code); !known[id] {
					known[id] = true
					o.Verdict.Invariants = append(o.Verdict.Invariants, check.Result{ID: id, Status: check.Passed, Judged: 3})
				}
			}
			if len(claim.Violations) == 0 && claim.in(name) {
				for _, id := range append(slices.Clone(claim.Steps), "steps[99].expect") {
					o.Expectations = append(o.Expectations, Expectation{history.Expectation{ID: id, OK: true, Text: claim.Text}, at(1)})
				}
			}
		}
	}
	return o
}

// all is a run of each scenario of a suite, in each form.
func all(s Suite) (runs []Observed) {
	for _, name := range s.Scenarios() {
		for _, form := range scenario.Contracts() {
			runs = append(runs, ran(s, name, form))
		}
	}
	return runs
}

func suite(t *testing.T, name string) Suite {
	t.Helper()
	s, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func suites(t *testing.T) (all []Suite) {
	for _, name := range []string{Reporter, Aggregator, Operator} {
		all = append(all, suite(t, name))
	}
	return all
}

func at(seconds int) time.Time { return time.Unix(int64(seconds), 0) }

// violate breaks an invariant in a run.
func (o *Observed) violate(v check.Violation) {
	o.Result.Status = result.Failed
	for i := range o.Verdict.Invariants {
		if r := &o.Verdict.Invariants[i]; r.ID == v.Invariant {
			r.Status, r.Count = check.Failed, r.Count+1
			r.Violations = append(r.Violations, v)
		}
	}
}

// miss fails one expectation of a run that a claim is about; house marks one that rests on a decision of this project.
func (o *Observed) miss(c Claim, house bool) {
	o.Result.Status = result.Failed
	for i := range o.Expectations {
		e := &o.Expectations[i]
		if e.OK && (len(c.Steps) == 0 && e.ID == "steps[99].expect" || slices.Contains(c.Steps, e.ID)) {
			e.OK, e.House, e.Detail = false, house, "it was not so"
			return
		}
	}
}

// of returns the outcomes other than passed, by id.
func of(results []conformance.Result) map[string]conformance.Result {
	m := map[string]conformance.Result{}
	for _, r := range results {
		if r.Outcome != conformance.Passed {
			m[r.ID] = r
		}
	}
	return m
}

// TestEachClaimFailsItsCheckAlone: a finding that fits a claim fails the check of the claim, and no other.
func TestEachClaimFailsItsCheckAlone(t *testing.T) {
	for _, s := range suites(t) {
		if bad := of(s.Judge(all(s), true)); len(bad) > 0 {
			t.Fatalf("%s: without a finding: %v", s.Name, bad)
		}
		for _, c := range s.Checks {
			for n, claim := range c.Claims {
				if len(claim.Violations) == 0 {
					t.Run(fmt.Sprintf("%s/%d", c.ID, n), func(t *testing.T) { failAlone(t, s, c, claim, "") })
				}
				for _, code := range claim.Violations {
					t.Run(fmt.Sprintf("%s/%d/%s", c.ID, n, code), func(t *testing.T) { failAlone(t, s, c, claim, code) })
				}
			}
		}
	}
}

// failAlone breaks a run by a violation with a code, or by an expectation if that is empty.
func failAlone(t *testing.T, s Suite, c Check, claim Claim, code string) {
	runs := all(s)
	i := slices.IndexFunc(runs, func(o Observed) bool { return c.fits(&o) && claim.in(o.scenario()) })
	if i < 0 {
		t.Fatalf("no scenario of the check exercises the claim")
	}
	if code == "" {
		runs[i].miss(claim, c.House)
	} else {
		v := violation(code)
		v.Node = claim.Node
		if c.House {
			v.House = "a decision of this project"
		}
		runs[i].violate(v)
	}
	got := of(s.Judge(runs, true))
	if got[c.ID].Outcome != conformance.Failed || got[c.ID].Evidence == nil || !strings.Contains(got[c.ID].Evidence.Request, runs[i].Result.Scenario) {
		t.Errorf("expected failed with evidence: %+v", got[c.ID])
	}
	for id, r := range got {
		if id != c.ID && r.Outcome == conformance.Failed {
			t.Errorf("%s failed, too: %+v", id, r.Evidence)
		}
	}
	if loose := of(s.Judge(runs, false)); c.House && code != "" && (loose[c.ID].Outcome != conformance.NotSupported || !strings.Contains(loose[c.ID].Reason, "--strict")) {
		t.Errorf("a house rule of somebody else's program: %+v", loose[c.ID])
	}
}

// TestARefusedReportIsOneFinding: what follows from refused writes is blocked, and points at the check that failed.
func TestARefusedReportIsOneFinding(t *testing.T) {
	s := suite(t, Reporter)
	runs := all(s)
	i := slices.IndexFunc(runs, func(o Observed) bool {
		return o.scenario() == "plugin-hangs" && o.Result.Form == scenario.ContractHealthReports
	})
	o := &runs[i]
	o.violate(check.Violation{Invariant: "CADENCE", Rule: "silent", At: at(1), Seen: "the reporter of cp-2 wrote nothing for 4s while it could write", Because: "ACCEPTED at +2.000s"})
	o.violate(check.Violation{Invariant: check.AcceptedID, At: at(2), Seen: `3 writes were refused: 422 Invalid: remoteKeyID: "Required value"`})
	o.violate(check.Violation{Invariant: "DETECTION", At: at(3), Seen: "late"})
	o.miss(Claim{In: []string{"plugin-hangs"}}, false)
	results := s.Judge(runs, false)
	for id, r := range of(results) {
		switch {
		case id == "HR-ACCEPTED-TYPED":
			if r.Outcome != conformance.Failed || !strings.Contains(r.Evidence.Response, "Required value") {
				t.Errorf("%+v", r)
			}
		case r.Outcome != conformance.Blocked || !strings.Contains(r.Reason, "HR-ACCEPTED-TYPED"):
			t.Errorf("%s: %s: %s", id, r.Outcome, r.Reason)
		}
	}
	if results[1].ID != "HR-ACCEPTED-TYPED" || len(of(results)) < 3 { // after HR-RUNS, which passed
		t.Errorf("%s comes first; not passed: %v", results[1].ID, of(results))
	}
}

// TestNothingJudgedIsNoPass: what was not run, not supported, starved or cut off passes nothing.
func TestNothingJudgedIsNoPass(t *testing.T) {
	s := suite(t, Reporter)
	change := func(change func(*Observed)) []conformance.Result {
		runs := all(s)
		for i := range runs {
			change(&runs[i])
		}
		return s.Judge(runs, true)
	}
	for name, c := range map[string]struct {
		results []conformance.Result
		outcome conformance.Outcome
		reason  string
	}{
		"nothing ran": {s.Judge(nil, true), conformance.NotSupported, "nothing in the runs showed it"},
		"not supported": {change(func(o *Observed) {
			*o = Observed{Result: result.Result{Scenario: o.Result.Scenario, Form: o.Result.Form, Status: result.NotSupported, Reasons: []string{"metrics"}}}
		}), conformance.NotSupported, "needs metrics"},
		"starved": {change(func(o *Observed) { o.Result.Status = result.Inconclusive }), conformance.Blocked, "inconclusive"},
		"broken": {change(func(o *Observed) {
			*o = Observed{Result: result.Result{Scenario: o.Result.Scenario, Form: o.Result.Form, Status: result.CouldNotRun, Reasons: []string{"no etcd"}}}
		}), conformance.Blocked, "no etcd"},
		"cut off": {change(func(o *Observed) { o.Expectations[0].OK, o.Result.Status = false, result.Failed }), conformance.Blocked, "because of HR-FIRST-REPORT"},
	} {
		for _, r := range c.results {
			if name == "cut off" && r.ID == "HR-FIRST-REPORT" {
				if r.Outcome != conformance.Failed {
					t.Errorf("%s: %s: %s", name, r.ID, r.Outcome)
				}
				continue
			}
			form := r.Reason == "no run was in the wire form conditions" || r.Reason == "no run was in the wire form healthreports"
			if r.Outcome != c.outcome || !strings.Contains(r.Reason, c.reason) && !form {
				t.Errorf("%s: %s: %s: %s", name, r.ID, r.Outcome, r.Reason)
			}
		}
	}
}

// TestWithoutMetrics: a reporter without metrics is no failure, and what a step expects beside them is no evidence of metrics.
func TestWithoutMetrics(t *testing.T) {
	s := suite(t, Reporter)
	runs := all(s)
	for n := range runs {
		o := &runs[n]
		if o.scenario() != "observability-metrics" {
			continue
		}
		o.Result.Notes = []string{"what is expected of metrics in steps[0], steps[2], steps[4], steps[6], steps[7] is not judged: the reporter under test is given no {metricsAddress}"}
		o.Expectations = slices.DeleteFunc(o.Expectations, func(e Expectation) bool {
			return e.ID != "steps[2].expect" && strings.HasPrefix(e.ID, "steps[") && e.ID != "steps[99].expect"
		})
		for i := range o.Expectations {
			o.Expectations[i].Text = "report"
		}
	}
	for _, r := range s.Judge(runs, false) {
		want := conformance.Passed
		if strings.HasPrefix(r.ID, "HR-METRIC-") {
			want = conformance.NotSupported
		}
		if r.Outcome != want {
			t.Errorf("%s: %s: %s", r.ID, r.Outcome, r.Reason)
		}
	}
}

// TestAnExitIsOneFinding: a subject that ends by itself fails one check, with its exit code, and all that follows is blocked.
func TestAnExitIsOneFinding(t *testing.T) {
	s := suite(t, Reporter)
	runs := all(s)
	for i := range runs {
		o := &runs[i]
		o.violate(check.Violation{Invariant: check.NoExitID, At: at(1), Seen: "reporter/cp-1 ended by itself: exit code 3"})
		o.violate(check.Violation{Invariant: "CADENCE", Rule: "silent", At: at(4), Seen: "the reporter of cp-1 wrote nothing for 5s while it could write"})
		o.miss(Claim{Steps: []string{beforeSteps}}, false)
	}
	results := s.Judge(runs, false)
	if results[0].ID != "HR-RUNS" || results[0].Outcome != conformance.Failed || !strings.Contains(results[0].Evidence.Response, "exit code 3") {
		t.Errorf("first: %+v", results[0])
	}
	for _, r := range results[1:] {
		if r.Outcome == conformance.Failed {
			t.Errorf("%s failed, too: %+v", r.ID, r.Evidence)
		}
	}
}

// TestBrokenEverywhere: a mistake that shows where nothing happens to the subject is a finding of the general check, and not of each scenario.
func TestBrokenEverywhere(t *testing.T) {
	s := suite(t, Reporter)
	runs := all(s)
	for i := range runs {
		runs[i].violate(check.Violation{Invariant: "CADENCE", Rule: "silent", At: at(2), Seen: "the reporter of cp-1 wrote nothing for 5s while it could write"})
	}
	for id, r := range of(s.Judge(runs, false)) {
		if r.Outcome == conformance.Failed && id != "HR-CADENCE-MAX" {
			t.Errorf("%s failed: %+v", id, r.Evidence)
		}
	}
}

// TestRestsOn: a reporter that calls no plugin does not hold the rules about what it reports of an answer.
func TestRestsOn(t *testing.T) {
	s := suite(t, Reporter)
	for _, where := range []string{undisturbed, "plugin-hangs-beside-another"} {
		runs := all(s)
		for i := range runs {
			if runs[i].scenario() == where {
				runs[i].violate(check.Violation{Invariant: "TRUTHFUL-PROBE", Rule: "no-call", At: at(2), Seen: "entry healthy, when no Status call reached the plugin"})
			}
		}
		got := of(s.Judge(runs, false))
		if r, held := got["HR-TRUTHFUL"], where != undisturbed; got["HR-LAST-CHECKED"].Outcome != conformance.Failed || held != (r.Outcome == "") || !held && r.Outcome != conformance.Blocked {
			t.Errorf("%s: %+v", where, got)
		}
	}
}

// TestSuites: each check can be cited and judged, and suites have the size that they promise.
func TestSuites(t *testing.T) {
	least := map[string]int{Reporter: 30, Aggregator: 25, Operator: 10}
	catalogue, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, s := range suites(t) {
		if len(s.Checks) < least[s.Name] {
			t.Errorf("%s: %d checks, expected %d", s.Name, len(s.Checks), least[s.Name])
		}
		known := codesOf(s)
		for _, c := range s.Checks {
			if ids[c.ID] || c.Title == "" || c.Rule == "" || c.Source == "" || c.Consequence == "" || len(c.Scenarios) == 0 || len(c.Claims) == 0 || !slices.Contains(conformance.Profiles(), c.Profile) {
				t.Errorf("%s: it exists twice or has an empty field: %+v", c.ID, c)
			}
			if ids[c.ID] = true; c.House != strings.Contains(c.Source, "[decided here]") && c.Profile == conformance.Core && c.House {
				t.Errorf("%s: a decision of this project is no core rule", c.ID)
			}
			if c.RestsOn != "" && !slices.Contains(s.IDs(), c.RestsOn) {
				t.Errorf("%s: there is no check %s", c.ID, c.RestsOn)
			}
			if c.Form != "" && !slices.Contains(scenario.Contracts(), c.Form) {
				t.Errorf("%s: there is no wire form %s", c.ID, c.Form)
			}
			for _, name := range c.Scenarios {
				if !slices.ContainsFunc(catalogue, func(x *scenario.Scenario) bool { return x.Name == name }) {
					t.Errorf("%s: there is no scenario %s", c.ID, name)
				}
			}
			for _, claim := range c.Claims {
				for _, code := range claim.Violations {
					if !known[code] {
						t.Errorf("%s: there is no rule %s", c.ID, code)
					}
				}
				if slices.ContainsFunc(claim.Steps, func(id string) bool { return !claim.exists(catalogue, id) }) || len(claim.Violations) > 0 && len(claim.Steps) > 0 {
					t.Errorf("%s: claims steps that its scenarios do not have: %+v", c.ID, claim)
				}
			}
		}
		for code := range known {
			for _, form := range scenario.Contracts() {
				o := Observed{Result: result.Result{Scenario: undisturbed, Form: form}}
				if s.owner(finding{run: &o, Violation: violation(code)}, false) < 0 {
					t.Errorf("%s: no check claims %s in the form %s", s.Name, code, form)
				}
			}
		}
	}
}

// violation has a code.
func violation(code string) check.Violation {
	id, rule, _ := strings.Cut(code, "/")
	return check.Violation{Invariant: id, Rule: rule, At: at(2), Seen: "seen", Allowed: "allowed"}
}

// codesOf are the invariants by which a suite is judged, and their rules.
func codesOf(s Suite) map[string]bool {
	known := map[string]bool{}
	for _, i := range append(check.Invariants(), s.Invariants...) {
		known[i.ID] = true
		for _, r := range i.Rules {
			known[check.Code(i.ID, r.Code)] = true
		}
	}
	return known
}

// exists reports whether the scenarios of a claim have an expectation.
func (c Claim) exists(catalogue []*scenario.Scenario, id string) bool {
	if id == beforeSteps {
		return true
	}
	for _, x := range catalogue {
		for n, step := range x.Steps {
			if slices.Contains(c.In, x.Name) && step.Expect != nil && id == fmt.Sprintf("steps[%d].%s", n, strings.Replace(string(step.Expect.Mode), "within", "expect", 1)) {
				return true
			}
		}
	}
	return false
}
