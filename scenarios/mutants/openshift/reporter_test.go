package openshift_test

import (
	"slices"
	"testing"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/scenarios"
	"github.com/kmsharness/kmsharness/scenarios/mutants/openshift"
)

// sources is a reporter of the shape that OpenShift ships, with the back-off that the enhancement asks for.
func sources(t *testing.T) (choose.Options, map[string]virtual.Main) {
	t.Helper()
	programs := virtual.Programs()
	programs["openshift-reporter"] = openshift.Main
	system := undertest.System{Reporter: undertest.Reporter{MountSockets: true, Command: "openshift-reporter --back-off --kms-sockets={sockets} --node-name={node}" +
		" --kubeconfig={kubeconfig} --interval={interval} --read-timeout={readTimeout} --write-timeout={writeTimeout}"}}
	options, err := choose.Options{Options: local.Options{System: system}}.InForm(scenario.ContractHealthReports)
	if err != nil {
		t.Fatal(err)
	}
	return options, programs
}

// catalogue is in the typed form.
func catalogue(t *testing.T) []*scenario.Scenario {
	t.Helper()
	all, err := scenarios.Load()
	if err == nil {
		all, err = scenario.InForms(all, scenario.ContractHealthReports)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// judgeSources runs that reporter with a scenario.
func judgeSources(t *testing.T, s *scenario.Scenario, timing contract.Timing, strict bool) result.Result {
	t.Helper()
	options, programs := sources(t)
	options.Strict = strict
	fit := options.Fit(s, virtual.Name)
	if s.Topology.Connectivity == history.ConnectService || s.Topology.ReporterToken != "" || s.Name == "reporter-credential-expires" {
		fit.Unsupported = append(fit.Unsupported, "credentials in files: neither the mounts of a kubeconfig nor client-go's watch of a certificate are there in virtual time")
	}
	return engine.Execute(t.Context(), virtual.New(virtual.Options{System: options.System, Programs: programs, Timing: timing}), fit.Scenario, engine.Execution{
		Out: t.TempDir(), Unsupported: fit.Unsupported, Notes: fit.Notes,
		Options: engine.Options{Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: 1, SourceOnly: options.SourceOnly(), BackOff: options.BackOff()}})
}

// TestReporterOfTheSources: one that backs off as the enhancement asks for keeps every rule that a source has.
func TestReporterOfTheSources(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make nightly STAGES=unit")
	}
	ran := 0
	for _, s := range catalogue(t) {
		t.Run(s.Name, func(t *testing.T) {
			switch r := judgeSources(t, s, contract.Timing{}, false); r.Status {
			case result.NotSupported:
				t.Skip(r.Reasons)
			case result.Passed:
				ran++
			default:
				t.Error(r.Text())
			}
		})
	}
	if ran < 100 {
		t.Errorf("%d scenarios passed, expected a hundred at least", ran)
	}
}

// TestBackOffIsAHouseRule: a back-off at the intervals of production breaks a house rule, and no other.
func TestBackOffIsAHouseRule(t *testing.T) {
	all := catalogue(t)
	for name, caught := range map[string]string{"plugin-away-for-long": "MONOTONIC", "steady-state": ""} {
		s := all[slices.IndexFunc(all, func(s *scenario.Scenario) bool { return s.Name == name })]
		for subject, strict := range map[string]bool{"by the sources": false, "backs-off-at-production-intervals": true} {
			r := judgeSources(t, s, contract.DefaultTiming(), strict)
			if want := strict && caught != ""; (r.Status == result.Failed) != want || want && r.Failures[0].ID != caught {
				t.Errorf("%s: expected %q with --strict, and nothing without: %s", subject, caught, r.Text())
			}
		}
	}
}
