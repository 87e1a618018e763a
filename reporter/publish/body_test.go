package publish

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/contract"
)

var checked = time.Date(2026, 5, 8, 12, 34, 56, 0, time.UTC)

func report() contract.Report {
	return contract.Report{Node: "cp-1", Entries: []contract.Entry{
		{KeyID: "2", KEKID: "kek-9f2c", Status: contract.StatusHealthy, LastChecked: checked},
		{KeyID: "1", Status: contract.StatusError, LastChecked: checked, Detail: "Unavailable: connection refused"},
	}}
}

func TestConditionsBody(t *testing.T) {
	got, err := ConditionsBody(KubeAPIServer, report(), checked.Add(-time.Hour))
	want := `{"apiVersion":"operator.openshift.io/v1","kind":"KubeAPIServer","metadata":{"name":"cluster"},"status":{"conditions":[` +
		`{"type":"KMSHealthReporter_cp-1","status":"True","reason":"AsExpected","message":"[` +
		`{\"keyID\":\"2\",\"kekID\":\"kek-9f2c\",\"status\":\"healthy\",\"lastChecked\":\"2026-05-08T12:34:56Z\"},` +
		`{\"keyID\":\"1\",\"status\":\"error\",\"lastChecked\":\"2026-05-08T12:34:56Z\",\"detail\":\"Unavailable: connection refused\"}` +
		`]","lastTransitionTime":"2026-05-08T11:34:56Z"}]}}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func TestHealthReportsBody(t *testing.T) {
	list := `{"healthReports":[` +
		`{"nodeName":"cp-1","keyID":"2","status":"Healthy","lastCheckedTime":"2026-05-08T12:34:56Z","remoteKeyID":"kek-9f2c"},` +
		`{"nodeName":"cp-1","keyID":"1","status":"Error","lastCheckedTime":"2026-05-08T12:34:56Z","remoteKeyID":"kek-old","detail":"Unavailable: connection refused"}]}`
	for operator, status := range map[Operator]string{
		KubeAPIServer:      `"kind":"KubeAPIServer","metadata":{"name":"cluster"},"status":{"encryptionStatus":` + list + `}`,
		OpenShiftAPIServer: `"kind":"OpenShiftAPIServer","metadata":{"name":"cluster"},"status":{"encryptionStatus":` + list + `}`,
		Authentication:     `"kind":"Authentication","metadata":{"name":"cluster"},"status":{"oauthAPIServer":{"encryptionStatus":` + list + `}}`,
	} {
		got, err := HealthReportsBody(operator, report(), map[string]string{"1": "kek-old"})
		want := `{"apiVersion":"operator.openshift.io/v1",` + status + `}`
		if err != nil || string(got) != want {
			t.Errorf("%s: got  %s, %v\nwant %s", operator, got, err, want)
		}
	}
}

func TestBodyRefusesWhatNobodyCouldMean(t *testing.T) {
	twice := report()
	twice.Entries[1].KeyID = "2"
	if _, err := ConditionsBody(KubeAPIServer, twice, checked); err == nil {
		t.Error("a keyID that occurs twice was encoded as a condition")
	}
	if _, err := HealthReportsBody(KubeAPIServer, twice, nil); err == nil {
		t.Error("a keyID that occurs twice was encoded in the typed form")
	}
	if _, err := ConditionsBody("etcd", report(), checked); err == nil || !strings.Contains(err.Error(), `operator "etcd"`) {
		t.Errorf("an unknown operator: %v", err)
	}
}

// sameInYAML sees that the API server, which reads an apply as YAML, reads what the JSON says.
func sameInYAML(t interface{ Fatalf(string, ...any) }, body []byte) {
	var fromJSON, fromYAML map[string]any
	if err := json.Unmarshal(body, &fromJSON); err != nil {
		t.Fatalf("%q is not JSON: %v", body, err)
	}
	if err := yaml.UnmarshalStrict(body, &fromYAML); err != nil {
		t.Fatalf("%q is not YAML: %v", body, err)
	}
	if !reflect.DeepEqual(fromJSON, fromYAML) {
		t.Fatalf("as JSON %v\nas YAML %v", fromJSON, fromYAML)
	}
}

func hostileBodies(t interface{ Fatalf(string, ...any) }, kekID, detail string) {
	r := report()
	r.Entries[0].KEKID, r.Entries[1].Detail = kekID, detail
	condition, err := ConditionsBody(KubeAPIServer, r, checked)
	if err != nil {
		t.Fatalf("condition: %v", err)
	}
	typed, err := HealthReportsBody(Authentication, r, map[string]string{"1": kekID})
	if err != nil {
		t.Fatalf("typed: %v", err)
	}
	sameInYAML(t, condition)
	sameInYAML(t, typed)
}

func TestHostileTextReadsTheSameAsYAML(t *testing.T) {
	for _, text := range []string{
		"\x7f", "\u0080", "\u0085", "\u009f", "\ufeff", "\ufffe", "\uffff", "\u2028", "\x00", "\t\r\n", "😀", "\U0001fffe", "\xff",
		`"}],"status":{}`, "{{ x }}", "- a: b", "&anchor *alias", "# comment", "%TAG", "<a&b>", "\\u0041", strings.Repeat("\u007f", 1024),
	} {
		hostileBodies(t, text, text)
	}
}

func TestAnyTextReadsTheSameAsYAML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hostileBodies(t, rapid.String().Draw(t, "kekID"), rapid.String().Draw(t, "detail"))
	})
}

// TestYAMLSafeIsNeeded is the known-bad subject: without it the API server would reject these.
func TestYAMLSafeIsNeeded(t *testing.T) {
	for _, r := range "\x7f\u0080\ufffe\uffff" {
		var v any
		if err := yaml.Unmarshal([]byte(`{"a":"x`+string(r)+`"}`), &v); err == nil {
			t.Errorf("YAML reads %U as it is", r)
		}
	}
}
