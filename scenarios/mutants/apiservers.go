package mutants

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// What only a cluster with several API servers that encrypt can have wrong. Each mistake was made by somebody who had kube-apiserver in mind.

// aggregatedReporters are reporters of aggregated API servers that take something of kube-apiserver for theirs.
func aggregatedReporters() []Mutant {
	return []Mutant{
		{
			Name: "operator-of-the-default", Scenario: "apiservers-oauth-killed", Caught: []string{"TRUTHFUL-PROBE", "before.expect"},
			Mistake: "the sidecar of oauth-apiserver without --operator: its reports stand in the CR of kube-apiserver, in the place of that one's",
			Virtual: reporting(func(r *startingReporter) error {
				if r.Operator == publish.Authentication {
					r.Operator = publish.KubeAPIServer
				}
				return nil
			}),
		},
		{
			Name: "sockets-of-the-static-pod", Scenario: "apiservers-plugin-hangs", Caught: []string{"TRUTHFUL-PROBE", "steps[1].expect"},
			Mistake: "the host's folder of sockets mounted in place of the pod's own: all API servers of a node report the plugins of one",
			Virtual: reporting(func(r *startingReporter) error {
				for i, p := range r.Plugins {
					r.Plugins[i].Socket = ofStaticPod(p.Socket)
				}
				return nil
			}),
		},
		{
			Name: "sockets-of-the-first-pod", Scenario: "apiservers-two-pods", Caught: []string{"steps[4].expect"},
			Mistake: "a hostPath for the sockets of a Deployment, where two replicas of one node have the same folder: the plugin of the second is probed by nobody",
			Virtual: reporting(func(r *startingReporter) error {
				for i, p := range r.Plugins {
					r.Plugins[i].Socket = strings.Replace(p.Socket, "-2/", "/", 1)
				}
				return nil
			}),
		},
		{
			Name: "empties-its-report-at-its-end", Scenario: "apiservers-surge", Caught: []string{"steps[0].parallel[1].holds"}, Virtual: reporting(emptyAtTheEnd),
			Mistake: "a last report without plugins, to tidy up: in a roll-out with surge it takes the place of what the successor has written on the same node",
		},
	}
}

// emptyAtTheEnd lets the reporter of an aggregated API server write an empty report when it ends.
func emptyAtTheEnd(r *startingReporter) error {
	if r.Operator == publish.KubeAPIServer {
		return nil
	}
	p, err := r.publisher(nil)
	if err != nil {
		return err
	}
	r.ends = append(r.ends, func() {
		until := r.Clock().Now().Add(r.Timing.WriteTimeout)
		_ = p.Apply(context.Background(), core.Action{Kind: core.Write, Until: until, Report: contract.Report{Node: r.Node}}) // it has ended
	})
	return nil
}

// ofStaticPod is the socket of kube-apiserver's plugin of the same name on the same node: an aggregated API server has its sockets in a folder of its
// name, beside those of the nodes.
func ofStaticPod(socket string) string {
	own, name := filepath.Split(socket)
	pods, node := filepath.Split(filepath.Clean(own))
	all, apiServer := filepath.Split(filepath.Clean(pods))
	if !slices.Contains(scenario.APIServers(), apiServer) {
		return socket
	}
	return filepath.Join(all, node, name)
}

// aggregatedAggregators are aggregators of aggregated API servers that read the wrong reports.
func aggregatedAggregators() []Mutant {
	return []Mutant{{
		Name: "rolls-up-another-operator", Scenario: "apiservers-plugin-hangs", Caught: []string{"ROLLUP-TRUTH", "before.expect"},
		Mistake: "a controller copied from one operator to the other with the name of its CR: what fails at openshift-apiserver nobody rolls up",
		Virtual: aggregatesBy(func(a *startingAggregator) {
			if slices.Contains(a.args, operatorFlag(history.OpenShiftAPIServer)) {
				a.args = append(slices.Clone(a.args), operatorFlag(history.OAuthAPIServer))
			}
		}),
	}}
}

// operatorFlag is how an aggregator is started whose reports are of an API server.
func operatorFlag(apiServer string) string { return "--operator=" + scenario.OperatorOf(apiServer) }

// aggregatedPlugins are plugins of aggregated API servers with kube-apiserver's key.
func aggregatedPlugins() []Mutant {
	return []Mutant{{
		Name: "one-key-for-all", Scenario: "apiservers-encrypted", Caught: []string{"steps[3].expect"},
		Mistake: "one configuration for the plugins of all API servers: whoever may decrypt with the key of one reads the data of all",
		Virtual: pluginsBy(func(p *startingPlugin) {
			p.args = slices.Clone(p.args)
			for i, arg := range p.args {
				if key, is := strings.CutPrefix(arg, "--key="); is && cluster.APIServerOfKey(key) != "" {
					p.args[i] = "--key=" + strings.TrimPrefix(key, cluster.APIServerOfKey(key)+".")
				}
			}
		}),
	}}
}

// aggregatedSwitches are operators that forget an API server.
func aggregatedSwitches() []Mutant {
	return []Mutant{{
		Name: "aggregated-data-not-migrated", Scenario: "apiservers-encryption-switched", Caught: []string{"NO-DATA-LOSS", "steps[2].expect"},
		Mistake: "a migration of secrets and configmaps: what an aggregated API server keeps stays under the old key, which is then removed",
		Virtual: setUp(live.TestHooks{Skip: func(apiServer, _ string) bool { return apiServer == history.OAuthAPIServer }}),
	}}
}
