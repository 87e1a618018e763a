package scenario_test

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// valid is a small scenario; each malformed one below is this one with something replaced.
const valid = `apiVersion: kmsharness.io/v1alpha1
kind: Scenario
metadata:
  name: plugin-hangs
  title: A hung Status is an error.
  area: plugin
  labels: [slow]
  covers: [S0-05, S0-08]
spec:
  topology: {controlPlanes: 3, keyIDs: ["1"], aggregators: 2, start: running}
  contract: conditions
  operator: kubeapiserver
  excused:
  - {invariant: LEAST-PRIVILEGE, reason: it attempts what is denied}
  steps:
  - inject: {plugin: {node: cp-2}, method: Status, fault: hang}
  - expect: rollup.degraded.status == "True"
    within: detection
  - wait: 2I
`

// step replaces the wait, which stands on line 19.
func step(text string) [2]string { return [2]string{"  - wait: 2I\n", text + "\n"} }

type malformed struct {
	name    string
	replace [2]string // "" replaces everything
	want    string    // every line
}

func TestMalformed(t *testing.T) {
	p := parser(t)
	for _, tt := range malformedFiles() {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.replace[1]
			if tt.replace[0] != "" {
				text = strings.Replace(valid, tt.replace[0], tt.replace[1], 1)
				if text == valid {
					t.Fatalf("nothing to replace: %q", tt.replace[0])
				}
			}
			_, err := p.Parse("plugin-hangs.yaml", []byte(text))
			if err == nil {
				t.Fatal("accepted")
			}
			if got := err.Error(); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestValid(t *testing.T) {
	s, err := parser(t).Parse("plugin-hangs.yaml", []byte(valid))
	if err != nil {
		t.Fatal(err)
	}
	if err := parser(t).Validate(s); err != nil {
		t.Errorf("valid from a file, invalid as a value: %v", err)
	}
}

// faults is a catalogue of two.
type faults struct{}

func (faults) Names() []string { return []string{"hang", "healthz"} }

func (faults) Profiles() []string { return []string{"aws"} }

func (faults) DurationParams(name string) []string {
	if name == "delay" {
		return []string{"by"}
	}
	return nil
}

func (faults) CheckFault(name, method string, params map[string]any) (out []scenario.FaultProblem) {
	if name != "hang" && name != "delay" {
		return []scenario.FaultProblem{{What: `there is no fault "` + name + `", did you mean "hang"?`}}
	}
	if _, ok := params["depth"]; ok {
		out = append(out, scenario.FaultProblem{Param: "depth", What: "there is no parameter depth"})
	}
	return out
}

func parser(t testing.TB) *scenario.Parser {
	t.Helper()
	var ids []string
	for _, i := range check.Invariants() {
		ids = append(ids, i.ID)
	}
	p, err := scenario.NewParser(scenario.Options{Faults: faults{}, Invariants: ids})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// beyondSchema are the malformed files that a JSON schema cannot refuse.
func beyondSchema() []string {
	return []string{
		"second document", "anchor and alias", "merge key", "name is not the file's", "two inertias", "zero",
		"too long", "astronomic", "impossible node", "impossible keyID", "unknown fault parameter", "fault for a wrong time", "unknown profile", "entries in conditions", "CRDs without the form", "link that reporters do not use", "overlap of aggregators", "overlap with a crash", "unlisted plugin that is listed", "unlisted plugin without a keyID", "unlisted process that is no plugin",
		"failure of no provider", "gate off without an operator",
		"fault's own duration", "a release of a plugin", "a second static pod", "a second pod that is killed", "a release of Kubernetes of an operator", "a release that a kube-apiserver is not of", "release of an unknown method", "node of a role without", "keyID of a reporter",
		"instance that is not there", "container of a role without", "node that is stopped",
		"node that is restarted in an orderly way", "container of a node", "pod that is paused", "container of a pod",
		"node that is not there", "keyID of a node", "link that does not exist", "slow link without delay", "cut link with delay",
		"slow handshake without delay", "throttled link without rate", "slow link with rate", "lossy link without loss",
		"reset link with a direction", "node cut off in one direction", "stale list of a reporter", "stale list of a node",
		"mute link with delay", "reset network", "node cut off from etcd alone", "single node cut off", "clock of nobody", "clock without by", "clock restored by", "node does two things",
		"refusal at a node that is not there", "refusal for no time", "refusal of a read by a webhook", "refusal that ends for a while", "refusal with Retry-After",
		"late watches without by", "ended watches with by",
		"node replaced by nothing", "node added twice", "node with a bad name", "kms disables on one node", "kms cuts a KEK", "kms credential without a provider", "kms failure of no log-in",
		"keyIDs without KMS", "condition status missing", "attempt without resource", "attempt to stream without streams", "certificate of a request", "managers of what has none", "at within repeat", "repeat until nonsense", "too many repetitions",
		"deep inside", "CEL syntax", "CEL unknown field", "CEL unknown variable", "CEL wrong type", "CEL not a bool",
		"CEL status that cannot be", "CEL node that cannot be", "CEL keyID that cannot be", "CEL in a literal block",
		"CEL in a folded block", "CEL over two lines", "CEL report status",
		"a provider's credential of a node", "a provider's credential that expires, and nobody logs in", "a provider's credential that is revoked, and several API servers", "a provider's credential that is rotated", "a provider's credential without an operator", "a reporter's credential beside an operator", "a reporter's credential of no node", "a reporter's credential that is removed",
		"apiserver without an operator", "role operator without one", "encryption beside an operator", "node beside operators of several API servers",
		"migrate beside an operator", "keyIDs of an operator",
		"cold start of an operator",
		"a rollback without an operator", "a rollback of no node", "a rollback of a node that is not there", "a rollback of one pod of a Deployment",
		"a rollback to the newest that is refused", "a rollback of an API server that is not there",
		"an operator that stands still", "KMS without a provider", "two providers", "a provider beside a cipher",
	}
}
