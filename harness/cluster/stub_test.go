package cluster

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// No two share a version, a part of etcd, a namespace or a user.
func TestStandsAreApart(t *testing.T) {
	seen := map[string]string{Component(""): history.KubeAPIServer}
	for _, name := range scenario.APIServers()[1:] {
		s, err := StubOf(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range []string{s.Version, s.Prefix(), s.Namespace, s.User(), s.DNSName(), s.Encrypted().Registry, Component(name) + " as a component"} {
			if seen[what] != "" {
				t.Errorf("%s and %s both have %s", seen[what], name, what)
			}
			seen[what] = name
		}
	}
	if _, err := StubOf(history.KubeAPIServer); err == nil || !strings.Contains(err.Error(), "expected openshift-apiserver") {
		t.Errorf("kube-apiserver: %v", err)
	}
}

func TestLacksFurther(t *testing.T) {
	node := &scenario.Node{}
	for want, s := range map[string]*scenario.Scenario{
		"":                     {Topology: scenario.Topology{APIServers: scenario.APIServers()}},
		"start: stopped":       {Topology: scenario.Topology{APIServers: scenario.APIServers(), Start: scenario.StartStopped}},
		"several aggregators":  {Topology: scenario.Topology{APIServers: scenario.APIServers(), Aggregators: 2}},
		"stay where they are":  {Topology: scenario.Topology{APIServers: scenario.APIServers()}, Steps: []scenario.Step{{Action: node}}},
		"nothing without them": {Topology: scenario.Topology{Aggregators: 2}, Steps: []scenario.Step{{Action: node}}},
	} {
		lacks := strings.Join(UnsupportedAggregated(s), "\n")
		if none := want == "" || len(s.Topology.Aggregated()) == 0; none != (lacks == "") || !none && !strings.Contains(lacks, want) {
			t.Errorf("%q, want %q", lacks, want)
		}
	}
}

// No key of the remote KMS is behind the plugins of two API servers.
func TestRemoteKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, of := range []string{"", history.OpenShiftAPIServer, history.OAuthAPIServer} {
		for _, keyID := range []string{"1", "key-1"} {
			key := RemoteKey(of, keyID)
			if seen[key] || APIServerOfKey(key) != of {
				t.Errorf("%q, keyID %s: key %q, which is of %q", of, keyID, key, APIServerOfKey(key))
			}
			seen[key] = true
		}
	}
}
