package matchers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega/types"
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/contract"
	. "github.com/kmsharness/kmsharness/harness/matchers"
)

// report of cp-1: plugin 2 is healthy, and plugin 1 does not answer.
func report() contract.Report {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return contract.Report{Node: "cp-1", Entries: []contract.Entry{
		{KeyID: "2", KEKID: "key", Status: contract.StatusHealthy, LastChecked: at}, {KeyID: "1", Status: contract.StatusError, LastChecked: at, Detail: "deadline exceeded"}}}
}

func operator(t *testing.T, status map[string]any) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operator.openshift.io/v1", "kind": "KubeAPIServer", "status": status}}
}

// conditions are a rollup, the report and one that cannot be read.
func conditions(t *testing.T) []any {
	t.Helper()
	message, err := contract.EncodeMessage(report().Entries)
	if err != nil {
		t.Fatal(err)
	}
	return []any{
		map[string]any{"type": contract.ConditionDegraded, "status": "True", "reason": contract.ReasonPluginUnreachable, "message": "cp-1/1"},
		map[string]any{"type": contract.ConditionType("cp-1"), "status": "True", "reason": "AsExpected", "message": message},
		map[string]any{"type": contract.ConditionType("cp-2"), "status": "True", "reason": "AsExpected", "message": "?"},
	}
}

func typed(t *testing.T) []any {
	t.Helper()
	list, err := report().Typed(nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []any
	for _, r := range list {
		out = append(out, map[string]any{"nodeName": r.NodeName, "keyID": r.KeyID, "status": r.Status, "lastCheckedTime": r.LastCheckedTime, "remoteKeyID": r.RemoteKeyID, "detail": r.Detail})
	}
	return out
}

// Each matcher holds for a good subject, and says of a bad one what was expected and what there is.
func TestMatchers(t *testing.T) {
	both := operator(t, map[string]any{"conditions": conditions(t)})
	entries := operator(t, map[string]any{"encryptionStatus": map[string]any{"healthReports": typed(t)}})
	list := []metav1.Condition{{Type: "Available", Status: "True", Reason: "AsExpected"}}
	structured := &operatorv1.KubeAPIServer{}
	structured.Status.Conditions = []operatorv1.OperatorCondition{{Type: "EncryptionMigrationControllerProgressing", Status: operatorv1.ConditionFalse}}
	for name, test := range map[string]struct {
		matcher   types.GomegaMatcher
		good, bad any
		says      string // of the bad one
	}{
		"a rollup":           {HaveRollup("True", contract.ReasonPluginUnreachable), both, list, "Expected condition KMSPluginsDegraded=True PluginUnreachable\nfound conditions of other types: Available=True AsExpected"},
		"any reason":         {HaveRollup("True", ""), both, entries, "Expected condition KMSPluginsDegraded=True\nfound no conditions"},
		"another reason":     {HaveCondition("Available", "True", "AsExpected"), list, []metav1.Condition{{Type: "Available", Status: "True", Reason: "Odd", Message: "text"}}, "Expected condition Available=True AsExpected\nfound Available=True Odd: text"},
		"a typed object":     {HaveCondition("EncryptionMigrationControllerProgressing", "False", ""), structured, both, "found conditions of other types: KMSPluginsDegraded=True"},
		"any status":         {HaveCondition("Available", "", ""), list, []metav1.Condition{}, "Expected condition Available\nfound no conditions"},
		"a condition":        {HaveReport("cp-1", "1", contract.StatusError), both, entries.DeepCopy().Object["metadata"], "" /* it is no subject */},
		"a typed report":     {HaveReport("cp-1", "1", contract.StatusError), entries, list, "Expected report of cp-1 about plugin 1: error\nfound no reports"},
		"a report":           {HaveReport("cp-1", "2", contract.StatusHealthy), report(), both.DeepCopy().Object["status"], "found no reports"},
		"another node":       {HaveReport("cp-1", "2", ""), both, &contract.Report{Node: "cp-2", Entries: report().Entries[1:]}, "Expected report of cp-1 about plugin 2\nfound cp-2: plugin 1 error at 2026-01-02T03:04:05Z (deadline exceeded)"},
		"an unread report":   {HaveReport("cp-1", "1", ""), both, operator(t, map[string]any{"conditions": conditions(t)[2:]}), "found cp-2: malformed report"},
		"an unhealthy entry": {HaveReport("cp-1", "2", contract.StatusHealthy), entries, &contract.Report{Node: "cp-1", Entries: []contract.Entry{{KeyID: "2", Status: contract.StatusUnhealthy}}}, "found cp-1: plugin 2 unhealthy"},
	} {
		if ok, err := test.matcher.Match(test.good); err != nil || !ok {
			t.Errorf("%s: %v, %v: %s", name, ok, err, test.matcher.FailureMessage(test.good))
		}
		if text := test.matcher.NegatedFailureMessage(test.good); !strings.HasPrefix(text, "Expected no ") {
			t.Errorf("%s: %s", name, text)
		}
		ok, err := test.matcher.Match(test.bad)
		if test.says == "" {
			if err == nil || !strings.Contains(err.Error(), "expected an object or a list of conditions") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if text := test.matcher.FailureMessage(test.bad); err != nil || ok || !strings.Contains(text, test.says) {
			t.Errorf("%s: %v, %v: %s", name, ok, err, text)
		}
	}
}
