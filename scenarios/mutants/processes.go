package mutants

import (
	"path/filepath"
	"slices"
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
	return slices.Concat(openShift(), mutated(), []Mutant{
		{
			Name: "failover-not-told", Family: Reporter, Program: "kms-health-reporter", Args: strings.TrimSpace(reporterArgs), Scenario: "altsvc-load-balancer-removed", Caught: []string{"CADENCE"},
			Mistake: "a Deployment whose reporter was not given --connectivity=altsvc: it goes on as long as its load balancer does",
		},
		{
			Name: "key-id-flip-flop", Family: Plugin, Args: "--fault key-id-flip-flop", Scenario: "reporter-restarted-quickly", Caught: []string{"KEY-ID-STABLE"},
			Mistake: "a plugin that answers from whichever backend its load balancer picks, one of which has not seen the new KEK, so that key_id goes back and forth",
		},
		{
			Name: "socket-writable-by-all", Family: Plugin, Args: "--socket-mode=0666", Scenario: "node-paused", Caught: []string{"steps[5].expect"},
			Mistake: "a socket that is opened to everybody so that a reporter without privileges can connect: any user of the node can call Decrypt",
		},
	})
}

// mutated are this project's reporter and aggregator with a mutation.
func mutated() (all []Mutant) {
	for _, m := range []struct {
		family                                    Family
		name, mutation, scenario, caught, mistake string
	}{
		{Reporter, "write-on-change", "write-on-change", "reporter-restarted-quickly", "CADENCE", "a reporter that spares the API server writes which say nothing new, so that lastChecked no longer tells a healthy reporter from a dead one"},
		{Reporter, "catches-up", "catches-up", "reporter-paused", "CADENCE", "a schedule that counts from the last due time instead of from now: after a pause every tick that was missed is made up for, in a burst"},
		{Reporter, "ends-at-once", "ends-at-once", "plugin-hangs", "NO-EXIT", "a reporter that ends before its first report, as by a panic, and that nothing starts again"},
		{Reporter, "rejected-apply", "rejected-apply", "typed-failure-from-the-first-tick", "ACCEPTED CADENCE", "a reporter of the typed form that has no remoteKeyID for a plugin which never answered and leaves it empty, so that the API server rejects the whole apply and nobody learns of the failure"},
		{Aggregator, "forget-removed-nodes", "forget-removed-nodes", "node-removed", "NO-ORPHAN", "an aggregator whose node handler has no delete function: it never cleans up after a removed node, and counts its report for ever"},
		{Reporter, "no-rpc-deadline", "no-rpc-deadline", "plugin-hangs", "CADENCE", "a deadline that is a flag and a field and never reaches the context of the RPC: one plugin that hangs silences its node"},
		{Reporter, "plugin-never-redialled", "plugin-never-redialled", "plugin-crashes-and-returns", "TRUTHFUL-PROBE", "a connection to the plugin that is made at the start and kept: after the plugin's first restart it is unreachable for ever"},
		{Reporter, "apiserver-never-redialled", "apiserver-never-redialled", "apiserver-down", "CADENCE", "a connection to the API server that is made at the start and kept: after the API server's first restart the reporter is silent until its own"},
		{Reporter, "service-never-redialled", "apiserver-never-redialled", "service-load-balancer-restarted", "CADENCE", "the same behind a load balancer, where the next connection would have been served: the report grows stale until somebody restarts the reporter"},
		{Reporter, "token-read-by-the-minute", "token-read-by-the-minute", "service-token-expires", "steps[4].expect", "client-go's own source of tokens, which reads the file once in 50 s, and not because of a 401: a reporter whose kubelet was late is silent for as long, although a new token is there"},
		{Aggregator, "watch-never-renewed", "watch-never-renewed", "watches-come-back", "ROLLUP-TRUTH", "an informer without a new list and watch after the connection broke: the aggregator learns of changes only when it happens to look"},
		{Aggregator, "lease-not-released", "lease-not-released", "aggregator-asked-to-leave", "steps[2].expect", "os.Exit on SIGTERM: the lease is not given back, and nobody aggregates until it has run out"},
	} {
		program, args := "mutant-reporter", reporterArgs
		if m.family == Aggregator {
			program, args = "mutant-aggregator", aggregatorArgs
		}
		if m.mutation == "lease-not-released" {
			args += electionArgs
		}
		all = append(all, Mutant{Name: m.name, Family: m.family, Program: program, Args: "--mutation " + m.mutation + args, Mistake: m.mistake, Scenario: m.scenario,
			Caught: strings.Fields(m.caught)})
	}
	return all
}

// openShift is mistakes in a reporter of the shape that OpenShift ships.
func openShift() (all []Mutant) {
	const args = " --kms-sockets={sockets} --node-name={node} --kubeconfig={kubeconfig} --interval={interval} --read-timeout={readTimeout} --write-timeout={writeTimeout}"
	for _, m := range []struct{ name, scenario, caught, mistake string }{
		{"openshift-remote-key-id-left-out", "plugin-hangs", "ACCEPTED CADENCE", "a remoteKeyID only where the plugin is healthy, as OpenShift shipped it in August 2026: the CRD requires one, and a failure silences the whole node"},
		{"openshift-detail-as-it-came", "typed-texts-visible", "ACCEPTED", "the text of a plugin as it came, which the API server refuses when it is too long"},
		{"openshift-shared-field-manager", "reporter-restarted-quickly", "OWNERSHIP", "one field manager for all nodes: each apply removes the entries of the others"},
		{"openshift-failed-writes-queued", "apiserver-down", "FRESH-ONLY", "failed writes that are kept and made good in order: what was true during the outage is written after it"},
		{"openshift-grpc-back-off", "plugin-away-for-long", "RECOVERY", "a connection to the plugin with gRPC's own back-off, which grows to two minutes: a plugin that was away for long is back, and nobody looks"},
		{"openshift-sockets-found-by-scan", "unlisted-plugin", "TRUTHFUL-PROBE", "a glob over the folder of the sockets in place of --kms-sockets: a plugin of another revision is reported"},
		{"openshift-report-removed-at-its-end", "reporters-overlap", "steps[0].parallel[1].holds", "tidying up at SIGTERM: in a roll-out with surge it removes what its successor has written under the same field manager"},
		{"openshift-field-manager-with-its-pid", "reporters-overlap", "OWNERSHIP", "a field manager of each process: what a reporter wrote before its restart is owned by nobody who could remove it"},
		{"openshift-credential-read-once", "reporter-credential-expires", "CADENCE", "a client that was given the certificate's text at its start, in place of its file"},
		{"openshift-writes-after-sigterm", "reporter-restarted-quickly", "NO-RESURRECTION", "last words at the end: what the aggregator has removed comes back when the reporter goes"},
	} {
		all = append(all, Mutant{Name: m.name, Family: Reporter, Contract: scenario.ContractHealthReports, Program: "openshift-reporter",
			Args: "--mistake " + strings.TrimPrefix(m.name, "openshift-") + args, MountSockets: true, Mistake: m.mistake, Scenario: m.scenario, Caught: strings.Fields(m.caught)})
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
