package mutants

import (
	"path/filepath"
	"strings"

	"github.com/kmsharness/kmsharness/harness/backend/local"
)

// The flags that the programs share with those that they mutate.
const (
	reporterArgs = " --kms-sockets={sockets} --node-name={node} --kubeconfig={kubeconfig} --interval={interval} --jitter={jitter}" +
		" --read-timeout={readTimeout} --write-timeout={writeTimeout} --metrics-address={metricsAddress}" +
		" --contract={contract} --operator={operator}"
	aggregatorArgs = " --kubeconfig={kubeconfig} --interval={interval} --operator={operator} --metrics-address={metricsAddress}"
)

// processes are the mutants that run on a real control plane.
func processes() []Mutant {
	return []Mutant{
		{
			Name: "write-on-change", Family: Reporter, Program: "mutant-reporter", Args: "--mutation write-on-change" + reporterArgs,
			Mistake:  "a reporter that spares the API server writes which say nothing new, so that lastChecked no longer tells a healthy reporter from a dead one",
			Scenario: "reporter-restarted-quickly", Caught: []string{"CADENCE"},
		},
		{
			Name: "rejected-apply", Family: Reporter, Program: "mutant-reporter", Args: "--mutation rejected-apply" + reporterArgs,
			Mistake:  "a reporter of the typed form that has no remoteKeyID for a plugin which never answered and leaves it empty, so that the API server rejects the whole apply and nobody learns of the failure",
			Scenario: "typed-failure-from-the-first-tick", Caught: []string{"CADENCE"},
		},
		{
			Name: "forget-removed-nodes", Family: Aggregator, Program: "mutant-aggregator", Args: "--mutation forget-removed-nodes" + aggregatorArgs,
			Mistake:  "an aggregator whose node handler has no delete function: it never cleans up after a removed node, and counts its report for ever",
			Scenario: "node-removed", Caught: []string{"NO-ORPHAN"},
		},
		{
			Name: "key-id-flip-flop", Family: Plugin, Args: "--fault key-id-flip-flop",
			Mistake:  "a plugin that answers from whichever backend its load balancer picks, one of which has not seen the new KEK, so that key_id goes back and forth",
			Scenario: "reporter-restarted-quickly", Caught: []string{"KEY-ID-STABLE"},
		},
	}
}

// Options run a mutant on the local backend. dir has the programs of cmd/.
func (m Mutant) Options(dir string) local.Options {
	command := filepath.Join(dir, m.Program) + " " + m.Args
	switch m.Family {
	case Reporter:
		return local.Options{ReporterCommand: command}
	case Aggregator:
		return local.Options{AggregatorCommand: command}
	default:
		return local.Options{PluginArgs: m.Args}
	}
}

// Command is what a person types to run a mutant by hand, in the root of the repository.
func (m Mutant) Command(dir string) string {
	if m.Simulated() {
		return "go run ./scenarios/mutants/cmd/mutants --verbose --name " + m.Name
	}
	o := m.Options(dir)
	flag, value := "--plugin-args", o.PluginArgs
	switch m.Family {
	case Reporter:
		flag, value = "--reporter-command", o.ReporterCommand
	case Aggregator:
		flag, value = "--aggregator-command", o.AggregatorCommand
	}
	return strings.Join([]string{"kmsharness run", "scenarios/catalogue/" + m.Scenario + ".yaml", flag, "'" + value + "'"}, " ")
}
