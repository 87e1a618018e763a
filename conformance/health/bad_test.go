package health_test

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
)

// misreporting is a reporter that changes each entry before it is written.
func misreporting(change func(e *contract.Entry)) virtual.Options {
	return mutants.Misreporting(func(a *core.Action) {
		for i := range a.Report.Entries {
			change(&a.Report.Entries[i])
		}
	})()
}

// TestBadReporters: reporters with a mistake that no subject in package mutants has, each caught by its check.
func TestBadReporters(t *testing.T) {
	if testing.Short() {
		t.Skip("long: runs of the suite")
	}
	for id, subject := range map[string]virtual.Options{
		"HR-ANSWER-ERROR": misreporting(func(e *contract.Entry) {
			if e.Status == contract.StatusError && strings.Contains(e.Detail, "simulated") { // an error with a text taken for an answer
				e.Status = contract.StatusUnhealthy
			}
		}),
		"HR-ANSWER-KEY-ID-OVERSIZED": misreporting(func(e *contract.Entry) {
			if e.Status == contract.StatusUnhealthy && strings.Contains(e.Detail, "bytes, expected at most") { // only an empty key_id is looked for
				e.Status, e.Detail, e.KEKID = contract.StatusHealthy, "", "cut"
			}
		}),
	} {
		t.Run(id, func(t *testing.T) {
			for _, r := range simulate(t, suites(t)[0], subject, scenario.ContractConditions, id) {
				if r.Outcome != conformance.Failed {
					t.Errorf("%s: %s, expected failed: %s", r.ID, r.Outcome, r.Reason)
				}
			}
		})
	}
}
