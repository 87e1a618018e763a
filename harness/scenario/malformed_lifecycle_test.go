package scenario_test

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// operated is the valid file with an operator and one action.
func operated(topology, action string) [2]string {
	head := "apiVersion: kmsharness.io/v1alpha1\nkind: Scenario\nmetadata: {name: plugin-hangs, title: T, area: lifecycle}\nspec:\n"
	return [2]string{"", head + "  topology: {lifecycle: operator" + topology + "}\n  steps:\n  - " + action + "\n"}
}

// malformedLifecycles are mistakes about who switches the encryption.
func malformedLifecycles() []malformed {
	const file = "plugin-hangs.yaml:"
	return []malformed{
		{"lifecycle of nobody", operatedBy("operater"),
			file + `5:25: lifecycle is "operater", expected direct or operator, did you mean "operator"?`},
		{"apiserver without an operator", step("  - apiserver: {type: aescbc}"),
			file + `19:16: apiserver without an operator that acts upon it, expected lifecycle: operator in the topology, or encryption instead`},
		{"role operator without one", step("  - kill: {role: operator}"),
			file + `19:18: role operator, and there is none, expected lifecycle: operator in the topology`},
		{"encryption beside an operator", operated("", "encryption: {type: aescbc}"),
			file + `7:17: encryption with lifecycle operator, expected apiserver: the operator switches, nobody else`},
		{"node beside operators of several API servers", operated(", apiServers: [kube-apiserver, oauth-apiserver]", "node: {remove: cp-2}"),
			file + `7:11: node with lifecycle operator and further API servers, expected the nodes of the topology: their operators cannot set up pods on others`},
		{"migrate beside an operator", operated("", "data: {op: migrate}"),
			file + `7:16: op migrate with lifecycle operator, expected write or verify: the operator migrates`},
		{"keyIDs of an operator", operated(`, keyIDs: ["1"]`, "apiserver: {type: aescbc}"),
			file + `5:43: keyIDs with lifecycle operator, expected none: it begins with clear text and numbers its keys from 1`},
		{"cold start of an operator", operated(", start: stopped", "apiserver: {type: aescbc}"),
			file + `5:42: start is stopped with lifecycle operator, expected running: it begins with clear text, so there is nothing to start cold`},
		{"an operator that stands still", operated("", "pause: {role: operator}"),
			file + `7:19: role operator with pause, expected it with start, stop, kill or restart`},
		{"an operator of no release", operated("", "restart: {role: operator, release: old}"),
			file + `7:40: release is "old", expected newer, previous, older, 1.34, 1.35, 1.36 or 1.37, did you mean "older"?`},
		{"a release of Kubernetes of an operator", operated("", `restart: {role: operator, release: "1.36"}`),
			file + `7:40: release is "1.36", expected newer, previous or older`},
		{"a second static pod", operated("", "start: {role: pod, node: cp-1, pod: second}"),
			file + `7:41: pod second of kube-apiserver, expected apiServer: only Deployments have several pods on a node`},
		{"a second pod that is killed", operated("", "kill: {role: pod, node: cp-1, pod: second}"),
			file + `7:40: pod second with kill, expected second, with start or stop: the first one is there always`},
		{"a release that a kube-apiserver is not of", operated("", "restart: {role: apiserver, release: older}"),
			file + `7:41: release is "older", expected 1.34, 1.35, 1.36 or 1.37`},
		{"a release of a plugin", operated("", "restart: {role: plugin, release: older}"),
			file + `7:38: release with role plugin, expected it with operator, reporter, aggregator or apiserver only`},
		{"KMS without a provider", operated("", "apiserver: {type: KMS}"),
			file + `7:16: type KMS without a provider, expected one of vault, aws, azure, gcp or thales`},
		{"two providers", operated("", "apiserver: {type: KMS, vault: {}, aws: {}}"),
			file + `7:44: aws beside vault, expected one provider`},
		{"a provider beside a cipher", operated("", "apiserver: {type: aescbc, vault: {}}"),
			file + `7:38: vault with type aescbc, expected it with KMS only`},
		{"a provider that nobody knows", operated("", "apiserver: {type: KMS, valt: {}}"),
			file + `7:28: unknown field "valt" in apiserver, expected type, expect, lag, vault, aws, azure, gcp or thales, did you mean "vault"?`},
		{"an outcome that nobody knows", operated("", "apiserver: {type: aescbc, expect: denied}"),
			file + `7:39: expect is "denied", expected accepted or refused`},
		{"a lag of a node that is not there", operated("", "apiserver: {type: aescbc, lag: {cp-9: 1s, cp-1: soon}}"),
			file + `7:43: node "cp-9" is not in the topology, expected cp-1, cp-2 or cp-3` + "\n" +
				file + `7:53: duration "soon": expected a number and a unit of I, J, R, W, A, ms, s or m, or detection, recovery, staleness, cleanup`},
		{"a provider's credential without an operator", step("  - credential: {provider: true, mode: change}"),
			file + `19:28: provider without an operator that gives plugins their credentials, expected lifecycle: operator in the topology`},
		{"a provider's credential of a node", operated("", "credential: {provider: true, node: cp-1, mode: change}"),
			file + `7:40: node with provider, expected none: all plugins have the same Secret`},
		{"a provider's credential that is rotated", operated("", "credential: {provider: true, mode: rotate}"),
			file + `7:40: mode rotate with provider, expected change, rewrite, remove, restore, expire, revoke or renew`},
		{"a provider's credential that expires, and nobody logs in", operated("", "credential: {provider: true, mode: expire}"),
			file + `7:40: mode expire without a provider, expected profile in the topology: other plugins do not log in`},
		{"a provider's credential that is revoked, and several API servers", operated(", profile: aws, apiServers: [kube-apiserver, oauth-apiserver]", "credential: {provider: true, mode: revoke}"),
			file + `7:40: mode revoke with several API servers, expected kube-apiserver alone: at the KMS the plugins of a node have the same name`},
		{"a reporter's credential beside an operator", operated("", "credential: {node: cp-1, mode: expire}"),
			file + `7:17: credential with lifecycle operator, expected provider: true: its operator starts reporters itself`},
		{"a reporter's credential of no node", step("  - credential: {mode: expire}"),
			file + `19:17: credential without a node, expected one, all, or provider: true`},
		{"a reporter's credential that is removed", step("  - credential: {node: cp-1, mode: remove}"),
			file + `19:36: mode remove of a reporter, expected expire, renew or rotate`},
		{"a rollback without an operator", step("  - rollback: {node: cp-1, to: previous}"),
			file + `19:15: rollback without an operator that makes revisions, expected lifecycle: operator in the topology`},
		{"a rollback of no node", operated("", "rollback: {to: previous}"),
			file + `7:15: rollback without node, expected one, any or all: each static pod has a revision of its own`},
		{"a rollback of a node that is not there", operated("", "rollback: {node: cp-9, to: 3}"),
			file + `7:22: node "cp-9" is not in the topology, expected cp-1, cp-2, cp-3, any or all`},
		{"a rollback to nothing", operated("", "rollback: {node: cp-1}"),
			file + `7:15: field "to" is missing in rollback`},
		{"a rollback to no revision", operated("", "rollback: {node: cp-1, to: 0}"),
			file + `7:32: to is "0", expected previous, newest or the number of a revision`},
		{"a rollback to a list", operated("", "rollback: {node: cp-1, to: [3]}"),
			file + `7:32: to is a list, expected previous, newest or the number of a revision`},
		{"a rollback with an outcome that nobody knows", operated("", "rollback: {node: cp-1, to: 3, expect: denied}"),
			file + `7:43: expect is "denied", expected accepted or refused`},
		{"a rollback to the newest that is refused", operated("", "rollback: {node: cp-1, to: newest, expect: refused}"),
			file + `7:48: expect is "refused" with to: newest, expected an older revision`},
		{"a rollback of one pod of a Deployment", operated(", apiServers: [kube-apiserver, oauth-apiserver]", "rollback: {apiServer: oauth-apiserver, node: cp-1, to: previous}"),
			file + `7:50: node "cp-1" with oauth-apiserver, expected none or all: its pods are those of one Deployment`},
		{"a rollback of an API server that is not there", operated("", "rollback: {apiServer: oauth-apiserver, to: previous}"),
			file + `7:27: API server "oauth-apiserver" is not in the topology, expected kube-apiserver, did you mean "kube-apiserver"?`},
		{"a type that nobody knows", operated("", "apiserver: {type: secretbox}"),
			file + `7:23: type is "secretbox", expected KMS, identity, aescbc or aesgcm`},
	}
}

func operatedBy(who string) [2]string {
	whole := operated("", "wait: 1I")
	return [2]string{"", strings.Replace(whole[1], "lifecycle: operator", "lifecycle: "+who, 1)}
}

// A rollback keeps its revision, as a number or a word, and its pods.
func TestRollback(t *testing.T) {
	p := parser(t)
	text := []byte(operated(", apiServers: [kube-apiserver, oauth-apiserver]", "rollback: {node: cp-2, to: previous}\n  - rollback: {node: any, to: 3, expect: refused}\n  - rollback: {apiServer: oauth-apiserver, to: \"4\"}\n  - rollback: {node: all, to: newest}")[1])
	for range 2 {
		s, err := p.Parse("plugin-hangs.yaml", text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		want := []scenario.Rollback{
			{Pods: scenario.Selector{Node: "cp-2"}, To: "previous"}, {Pods: scenario.Selector{Node: "any"}, To: "3", Expect: "refused"},
			{Pods: scenario.Selector{APIServer: "oauth-apiserver"}, To: "4"}, {Pods: scenario.Selector{Node: "all"}, To: "newest"},
		}
		for i, a := range s.Actions() {
			if got := *a.(*scenario.Rollback); got != want[i] {
				t.Errorf("%+v, expected %+v", got, want[i])
			}
		}
		if harm := scenario.Harm(s.Actions()[3]); harm != "" || scenario.Harm(s.Actions()[0]) != "rollback" {
			t.Errorf("the end of a rollback does the harm %q", harm)
		}
		if got := scenario.Line(s.Actions()[0], nil); got != "rollback process pod/cp-2 to=previous" {
			t.Errorf("%q", got)
		}
		if text, err = s.Encode(); err != nil {
			t.Fatal(err)
		}
	}
}

// A file with an operator has no keyIDs of its own, knows those that the operator makes, and survives being written again.
func TestLifecycle(t *testing.T) {
	p := parser(t)
	text := operated("", "apiserver: {type: aescbc}\n  - apiserver: {type: KMS, vault: {vaultKeyPath: transit/keys/one}}\n  - kill: {role: operator}\n"+
		"  - credential: {provider: true, mode: remove}\n"+
		"  - expect: 'report[\"cp-1\"][\"2\"].status == \"healthy\"'\n    within: 1I")[1]
	s, err := p.Parse("plugin-hangs.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if !s.Topology.ByOperator() || len(s.Topology.KeyIDs) != 0 {
		t.Errorf("topology %+v", s.Topology)
	}
	section := s.Actions()[1].(*scenario.APIServer).Sections["vault"]
	if section["vaultKeyPath"] != "transit/keys/one" {
		t.Errorf("section %v", section)
	}
	again, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s, err = p.Parse("plugin-hangs.yaml", again)
	if err != nil {
		t.Fatalf("%v in\n%s", err, again)
	}
	removed := s.Actions()[3].(*scenario.Credential)
	if undo, is := scenario.Undo(removed).(*scenario.Credential); !is || !removed.Provider || undo.Mode != scenario.CredentialRestore {
		t.Errorf("%+v", removed)
	}
	if d := (scenario.Scenario{Topology: scenario.Topology{Lifecycle: scenario.LifecycleOperator}}).WithDefaults(); len(d.Topology.KeyIDs) != 0 {
		t.Errorf("defaults %+v", d.Topology)
	}
}
