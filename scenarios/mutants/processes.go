package mutants

import (
	"path/filepath"
	"strings"

	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

// The flags that the programs share with those that they mutate.
const (
	reporterArgs = " --kms-sockets={sockets} --node-name={node} --kubeconfig={kubeconfig} --interval={interval} --jitter={jitter}" +
		" --read-timeout={readTimeout} --write-timeout={writeTimeout} --metrics-address={metricsAddress}" +
		" --contract={contract} --operator={operator}"
	aggregatorArgs = " --kubeconfig={kubeconfig} --interval={interval} --operator={operator} --metrics-address={metricsAddress}"
	// A lease that is long enough to be missed.
	electionArgs = " --leader-elect={leaderElect} --leader-elect-identity={instance} --leader-elect-lease-duration=20s" +
		" --leader-elect-renew-deadline=5s --leader-elect-retry-period=250ms"
)

// processes are the mutants that run on a real control plane.
func processes() []Mutant {
	return append(openShift(), []Mutant{
		{
			Name: "write-on-change", Family: Reporter, Program: "mutant-reporter", Args: "--mutation write-on-change" + reporterArgs,
			Mistake:  "a reporter that spares the API server writes which say nothing new, so that lastChecked no longer tells a healthy reporter from a dead one",
			Scenario: "reporter-restarted-quickly", Caught: []string{"CADENCE"},
		},
		{
			Name: "catches-up", Family: Reporter, Program: "mutant-reporter", Args: "--mutation catches-up" + reporterArgs,
			Mistake:  "a schedule that counts from the last due time instead of from now: after a pause every tick that was missed is made up for, in a burst",
			Scenario: "reporter-paused", Caught: []string{"CADENCE"},
		},
		{
			Name: "ends-at-once", Family: Reporter, Program: "mutant-reporter", Args: "--mutation ends-at-once" + reporterArgs,
			Mistake:  "a reporter that ends before its first report, as by a panic, and that nothing starts again",
			Scenario: "plugin-hangs", Caught: []string{"NO-EXIT"},
		},
		{
			Name: "rejected-apply", Family: Reporter, Program: "mutant-reporter", Args: "--mutation rejected-apply" + reporterArgs,
			Mistake:  "a reporter of the typed form that has no remoteKeyID for a plugin which never answered and leaves it empty, so that the API server rejects the whole apply and nobody learns of the failure",
			Scenario: "typed-failure-from-the-first-tick", Caught: []string{"ACCEPTED", "CADENCE"},
		},
		{
			Name: "forget-removed-nodes", Family: Aggregator, Program: "mutant-aggregator", Args: "--mutation forget-removed-nodes" + aggregatorArgs,
			Mistake:  "an aggregator whose node handler has no delete function: it never cleans up after a removed node, and counts its report for ever",
			Scenario: "node-removed", Caught: []string{"NO-ORPHAN"},
		},
		{
			Name: "no-rpc-deadline", Family: Reporter, Program: "mutant-reporter", Args: "--mutation no-rpc-deadline" + reporterArgs,
			Mistake:  "a deadline that is a flag and a field and never reaches the context of the RPC: one plugin that hangs silences its node",
			Scenario: "plugin-hangs", Caught: []string{"CADENCE"},
		},
		{
			Name: "plugin-never-redialled", Family: Reporter, Program: "mutant-reporter", Args: "--mutation plugin-never-redialled" + reporterArgs,
			Mistake:  "a connection to the plugin that is made at the start and kept: after the plugin's first restart it is unreachable for ever",
			Scenario: "plugin-crashes-and-returns", Caught: []string{"TRUTHFUL-PROBE"},
		},
		{
			Name: "apiserver-never-redialled", Family: Reporter, Program: "mutant-reporter", Args: "--mutation apiserver-never-redialled" + reporterArgs,
			Mistake:  "a connection to the API server that is made at the start and kept: after the API server's first restart the reporter is silent until its own",
			Scenario: "apiserver-down", Caught: []string{"CADENCE"},
		},
		{
			Name: "service-never-redialled", Family: Reporter, Program: "mutant-reporter", Args: "--mutation apiserver-never-redialled" + reporterArgs,
			Mistake:  "the same behind a load balancer, where the next connection would have been served: the report grows stale until somebody restarts the reporter",
			Scenario: "service-load-balancer-restarted", Caught: []string{"CADENCE"},
		},
		{
			Name: "token-read-by-the-minute", Family: Reporter, Program: "mutant-reporter", Args: "--mutation token-read-by-the-minute" + reporterArgs,
			Mistake:  "client-go's own source of tokens, which reads the file once in 50 s, and not because of a 401: a reporter whose kubelet was late is silent for as long, although a new token is there",
			Scenario: "service-token-expires", Caught: []string{"steps[4].expect"},
		},
		{
			Name: "failover-not-told", Family: Reporter, Program: "kms-health-reporter", Args: strings.TrimSpace(reporterArgs),
			Mistake:  "a Deployment whose reporter was not given --connectivity=altsvc: it goes on as long as its load balancer does",
			Scenario: "altsvc-load-balancer-removed", Caught: []string{"CADENCE"},
		},
		{
			Name: "watch-never-renewed", Family: Aggregator, Program: "mutant-aggregator", Args: "--mutation watch-never-renewed" + aggregatorArgs,
			Mistake:  "an informer without a new list and watch after the connection broke: the aggregator learns of changes only when it happens to look",
			Scenario: "watches-come-back", Caught: []string{"ROLLUP-TRUTH"},
		},
		{
			Name: "lease-not-released", Family: Aggregator, Program: "mutant-aggregator", Args: "--mutation lease-not-released" + aggregatorArgs + electionArgs,
			Mistake:  "os.Exit on SIGTERM: the lease is not given back, and nobody aggregates until it has run out",
			Scenario: "aggregator-asked-to-leave", Caught: []string{"steps[2].expect"},
		},
		{
			Name: "key-id-flip-flop", Family: Plugin, Args: "--fault key-id-flip-flop",
			Mistake:  "a plugin that answers from whichever backend its load balancer picks, one of which has not seen the new KEK, so that key_id goes back and forth",
			Scenario: "reporter-restarted-quickly", Caught: []string{"KEY-ID-STABLE"},
		},
	}...)
}

// openShift is mistakes in a reporter of the shape that OpenShift ships.
func openShift() []Mutant {
	const program = "openshift-reporter"
	args := " --kms-sockets={sockets} --node-name={node} --kubeconfig={kubeconfig} --interval={interval} --read-timeout={readTimeout} --write-timeout={writeTimeout}"
	all := []Mutant{
		{
			Name: "openshift-remote-key-id-left-out", Scenario: "plugin-hangs", Caught: []string{"ACCEPTED", "CADENCE"},
			Mistake: "a remoteKeyID only where the plugin is healthy, as OpenShift shipped it in August 2026: the CRD requires one, and a failure silences the whole node",
		},
		{
			Name: "openshift-detail-as-it-came", Scenario: "typed-texts-visible", Caught: []string{"ACCEPTED"},
			Mistake: "the text of a plugin as it came, which the API server refuses when it is too long",
		},
		{
			Name: "openshift-shared-field-manager", Scenario: "reporter-restarted-quickly", Caught: []string{"OWNERSHIP"},
			Mistake: "one field manager for all nodes: each apply removes the entries of the others",
		},
		{
			Name: "openshift-failed-writes-queued", Scenario: "apiserver-down", Caught: []string{"FRESH-ONLY"},
			Mistake: "failed writes that are kept and made good in order: what was true during the outage is written after it",
		},
		{
			Name: "openshift-grpc-back-off", Scenario: "plugin-away-for-long", Caught: []string{"RECOVERY"},
			Mistake: "a connection to the plugin with gRPC's own back-off, which grows to two minutes: a plugin that was away for long is back, and nobody looks",
		},
		{
			Name: "openshift-sockets-found-by-scan", Scenario: "unlisted-plugin", Caught: []string{"TRUTHFUL-PROBE"},
			Mistake: "a glob over the folder of the sockets in place of --kms-sockets: a plugin of another revision is reported",
		},
		{
			Name: "openshift-report-removed-at-its-end", Scenario: "reporters-overlap", Caught: []string{"steps[0].parallel[1].holds"},
			Mistake: "tidying up at SIGTERM: in a roll-out with surge it removes what its successor has written under the same field manager",
		},
		{
			Name: "openshift-field-manager-with-its-pid", Scenario: "reporters-overlap", Caught: []string{"OWNERSHIP"},
			Mistake: "a field manager of each process: what a reporter wrote before its restart is owned by nobody who could remove it",
		},
		{
			Name: "openshift-credential-read-once", Scenario: "reporter-credential-expires", Caught: []string{"CADENCE"},
			Mistake: "a client that was given the certificate's text at its start, in place of its file",
		},
		{
			Name: "openshift-writes-after-sigterm", Scenario: "reporter-restarted-quickly", Caught: []string{"NO-RESURRECTION"},
			Mistake: "last words at the end: what the aggregator has removed comes back when the reporter goes",
		},
	}
	for i := range all {
		m := &all[i]
		m.Family, m.Contract, m.Program, m.Args, m.MountSockets = Reporter, scenario.ContractHealthReports, program, "--mistake "+strings.TrimPrefix(m.Name, "openshift-")+args, true
	}
	return all
}

// Options run a mutant on the local backend. dir has the programs of cmd/.
func (m Mutant) Options(dir string) local.Options {
	command := filepath.Join(dir, m.Program) + " " + m.Args
	switch m.Family {
	case Reporter:
		return local.Options{System: undertest.System{Reporter: undertest.Reporter{Command: command, MountSockets: m.MountSockets}}}
	case Aggregator:
		return local.Options{System: undertest.System{Aggregator: undertest.Aggregator{Command: command}}}
	case Cluster:
		return local.Options{Manifest: m.Manifest}
	default:
		return local.Options{System: undertest.System{FakePlugin: undertest.FakePlugin{Args: m.Args}}}
	}
}

// Command is what a person types to run a mutant by hand, in the root of the repository.
func (m Mutant) Command(dir string) string {
	o := m.Options(dir)
	flag, value := "--reporter-command", o.Reporter.Command
	if m.Family == Aggregator {
		flag, value = "--aggregator-command", o.Aggregator.Command
	}
	if m.Backend() != "local" || value == "" || m.MountSockets { // flags cannot describe it
		return "go run ./scenarios/mutants/cmd/mutants --verbose --name " + m.Name
	}
	words := []string{"kmsharness run", "scenarios/catalogue/" + m.Scenario + ".yaml", flag, "'" + value + "'"}
	if m.Contract != "" {
		words = append(words, "--contract "+m.Contract)
	}
	return strings.Join(words, " ")
}
