package scenario_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// TestEncodeKeepsActions: what each verb acts on, and its arguments, are still there after a scenario was written as a file.
func TestEncodeKeepsActions(t *testing.T) {
	examples := []string{
		"inject: {plugin: {node: cp-1, keyID: '1'}, fault: delay, by: 1I, for: 3I, probability: 0.5}", "release: {plugin: {}, fault: hang, method: Status+Encrypt}",
		"rotate: {lag: {cp-1: 2I, cp-2: 500ms}}", "rotate: {lag: 2I}", "kms: {op: disable, kek: 1}", "kms: {op: cut, node: cp-2}",
		"start: {role: plugin, node: cp-1, keyID: '7', unlisted: true}", "stop: {role: reporter, node: any}", "kill: {role: aggregator, instance: leader}", "pause: {role: etcd}", "silence: {role: reporter, node: cp-2}", "resume: {role: etcd}",
		"restart: {role: plugin, node: cp-2, with: container}", "restart: {role: reporter, node: cp-2, overlap: 2I}",
		"link: {from: reporter, to: load-balancer, node: cp-3, mode: slow, delay: 200ms}",
		"link: {from: load-balancer, to: apiserver, node: cp-3, mode: throttled, rate: 500}", "link: {from: aggregator, to: load-balancer, mode: lossy, loss: 5}",
		"link: {from: apiserver, to: etcd, mode: cut, direction: answers}", "link: {from: load-balancer, to: apiserver, mode: stale}",
		"refuse: {role: reporter, node: cp-2, mode: too-many-requests, retryAfter: 2, count: 3, for: 2I, verb: patch}", "watches: {node: cp-3, mode: late, by: 2I}",
		"clock: {node: cp-1, mode: ahead, by: 2I}", "clock: {role: aggregator, mode: restore}", "credential: {node: cp-1, mode: expire}", "credential: {node: cp-1, mode: rotate}",
		"node: {replace: cp-1, with: cp-4, reporter: lingers}", "encryption: {type: KMS, keyIDs: ['2', '1']}", "data: {op: write, count: 6, size: 64}",
		"condition: {type: NodeControllerDegraded, status: 'True', reason: R, message: m, manager: other}", "condition: {type: XDegraded, delete: true}",
		"attempt: {as: cp-1, verb: create, resource: secrets, namespace: default, name: x, body: {data: {a: b, c: null}, list: [null, d]}, expect: denied}",
		"attempt: {as: cp-1, verb: apply-entry, managers: 6, expect: denied}",
	}
	p := parser(t)
	text := []byte("apiVersion: kmsharness.io/v1alpha1\nkind: Scenario\nmetadata: {name: kept, title: Kept., area: scale}\nspec:\n  topology: {connectivity: service}\n  steps:\n  - " + strings.Join(examples, "\n  - ") + "\n")
	var kept []scenario.Action
	for range 2 {
		s, err := p.Parse("kept.yaml", text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if text, err = s.Encode(); err != nil {
			t.Fatal(err)
		}
		if kept == nil {
			kept = s.Actions()
			continue
		}
		for i, a := range s.Actions() {
			want := kept[i]
			if scenario.VerbOf(a) != scenario.VerbOf(want) || scenario.Line(a, nil) != scenario.Line(want, nil) || scenario.Target(a, nil) != scenario.Target(want, nil) || !reflect.DeepEqual(scenario.Params(a), scenario.Params(want)) {
				t.Errorf("%s: %q, expected %q, in\n%s", examples[i], scenario.Line(a, nil), scenario.Line(want, nil), text)
			}
		}
	}
	ofCluster := []scenario.Verb{"rotate", "encryption", "data"}
	verbs := map[scenario.Verb]bool{}
	for _, a := range kept {
		verbs[scenario.VerbOf(a)] = true
		if want := slices.Contains(ofCluster, scenario.VerbOf(a)); scenario.OfCluster(a) != want {
			t.Errorf("%s acts on every API server: %v", scenario.VerbOf(a), !want)
		}
	}
	for _, v := range scenario.Verbs(nil).Names() {
		switch v {
		case "apiserver", "column", "encryptionhealth", "entries", "memory", "rollback", "serving": // in topologies and forms of their own
		default:
			if !verbs[v] {
				t.Errorf("no example of %s", v)
			}
		}
	}
}

// TestEncodeKeepsTheUnion: how the ClusterOperator is made is still there after a scenario was written as a file.
func TestEncodeKeepsTheUnion(t *testing.T) {
	for field, want := range map[string]contract.Union{
		"": {},
		"  clusterOperator: {degradedInertia: [2m, XDegraded=10m]}\n": {
			Inertia: contract.Inertia{All: 2 * time.Minute, Types: map[string]time.Duration{"XDegraded": 10 * time.Minute}},
		},
	} {
		p := parser(t)
		text := []byte("apiVersion: kmsharness.io/v1alpha1\nkind: Scenario\nmetadata: {name: kept, title: Kept., area: scale}\nspec:\n" + field + "  steps:\n  - wait: 1I\n")
		for range 2 {
			s, err := p.Parse("kept.yaml", text)
			if err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			if got := s.ClusterOperator.Union(); !reflect.DeepEqual(got, want) {
				t.Errorf("union %+v, expected %+v, in\n%s", got, want, text)
			}
			if text, err = s.Encode(); err != nil || strings.Contains(string(text), "clusterOperator") != (field != "") {
				t.Errorf("%v in\n%s", err, text)
			}
		}
	}
}
