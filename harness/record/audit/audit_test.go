package audit_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/audit"
)

const apply = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"a1","stage":"ResponseComplete",
"requestURI":"/apis/operator.openshift.io/v1/kubeapiservers/cluster/status?fieldManager=kms-health-reporter-cp-1&force=true","verb":"patch",
"user":{"username":"system:kms-health-reporter:cp-1","groups":["system:kms-health-reporters"]},"userAgent":"kms-health-reporter",
"objectRef":{"resource":"kubeapiservers","name":"cluster","apiGroup":"operator.openshift.io","apiVersion":"v1","subresource":"status"},
"responseStatus":{"metadata":{},"code":200},"requestObject":{"apiVersion":"operator.openshift.io/v1","kind":"KubeAPIServer"},
"responseObject":{"metadata":{"resourceVersion":"77"}},
"requestReceivedTimestamp":"2026-05-08T12:34:56.100000Z","stageTimestamp":"2026-05-08T12:34:56.200000Z"}`

func line(old, new string) []byte {
	return []byte(strings.ReplaceAll(strings.Replace(apply, old, new, 1), "\n", ""))
}

func TestDecode(t *testing.T) {
	r, ended, err := audit.Decode("cp-1", line("", ""))
	if err != nil || !ended {
		t.Fatal(err)
	}
	if r.Resource != "kubeapiservers.operator.openshift.io" || r.Subresource != "status" || r.Name != "cluster" ||
		r.FieldManager != "kms-health-reporter-cp-1" || !r.Force || r.ContentType != audit.ContentTypeApply || r.Code != 200 ||
		r.ResourceVersion != "77" || r.Completed.Sub(r.Received).Milliseconds() != 100 || len(r.Body) == 0 {
		t.Fatalf("decoded %+v", r)
	}
}

func TestDecodeTellsPatchesApart(t *testing.T) {
	for body, want := range map[string]string{
		`[{"op":"remove"}]`: audit.ContentTypeJSONPatch,
		`{"status":{}}`:     audit.ContentTypeMerge,
	} {
		r, _, err := audit.Decode("cp-1", line(`{"apiVersion":"operator.openshift.io/v1","kind":"KubeAPIServer"}`, body))
		if err != nil || r.ContentType != want {
			t.Errorf("%s: %v, %v, want %s", body, r, err, want)
		}
	}
}

func TestDecodeIgnoresStagesThatDoNotEndARequest(t *testing.T) {
	if r, ended, err := audit.Decode("cp-1", line("ResponseComplete", "ResponseStarted")); r != nil || ended || err != nil {
		t.Errorf("started: %v, %v, %v", r, ended, err)
	}
	if r, ended, err := audit.Decode("cp-1", line("ResponseComplete", "RequestReceived")); r == nil || ended || err != nil {
		t.Errorf("received: %v, %v, %v", r, ended, err)
	}
	watch := bytes.Replace(line("ResponseComplete", "ResponseStarted"), []byte(`"patch"`), []byte(`"watch"`), 1)
	if r, ended, err := audit.Decode("cp-1", watch); r == nil || !ended || err != nil {
		t.Errorf("watch: %v, %v, %v", r, ended, err)
	}
}

func TestDecodeNamesWhatIsWrong(t *testing.T) {
	for _, text := range []string{"", "{", "[]", `{"auditID":"x"}`} {
		if _, _, err := audit.Decode("cp-1", []byte(text)); err == nil || !strings.Contains(err.Error(), "audit log of cp-1") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRecorderChooses(t *testing.T) {
	for name, test := range map[string]struct {
		old, new string
		want     bool
	}{
		"reporter writes":           {"", "", true},
		"reporter reads":            {`"patch"`, `"get"`, true},
		"aggregator":                {"system:kms-health-reporter:cp-1", contract.AggregatorIdentity, true},
		"somebody writes":           {"system:kms-health-reporter:cp-1", "admin", true},
		"impersonated":              {`"userAgent"`, `"impersonatedUser":{"username":"admin"},"userAgent"`, true},
		"somebody reads":            {`"verb":"patch","user":{"username":"system:kms-health-reporter:cp-1"`, `"verb":"get","user":{"username":"admin"`, false},
		"somebody writes elsewhere": {`"user":{"username":"system:kms-health-reporter:cp-1"`, `"user":{"username":"admin"`, true},
	} {
		log := history.NewLog(nil)
		seen := ""
		r := audit.Recorder{Sink: log, Identity: audit.SystemUnderTest, Seen: func(_, agent string) { seen = agent },
			Resource: func(r string) bool { return r == "kubeapiservers.operator.openshift.io" }}
		text := apply
		if test.old != "" {
			text = strings.Replace(strings.ReplaceAll(apply, "\n", ""), test.old, test.new, 1)
		}
		if err := r.Line("cp-1", []byte(strings.ReplaceAll(text, "\n", ""))); err != nil {
			t.Fatal(err)
		}
		if got := len(log.Events()) == 1; got != test.want {
			t.Errorf("%s: recorded %v, want %v", name, got, test.want)
		}
		if seen != "kms-health-reporter" {
			t.Errorf("%s: user agent %q was not reported", name, seen)
		}
	}
}

// A request of the harness is known by its audit id, which no other client can know, and not by its user agent, which any client can send.
func TestRecorderTellsTheHarnessByItsAuditID(t *testing.T) {
	log := history.NewLog(nil)
	r := audit.Recorder{Sink: log, Identity: audit.SystemUnderTest, Resource: func(string) bool { return false }, Harness: func(id string) bool { return id == "a1" }}
	harness := strings.ReplaceAll(apply, "\n", "")
	imitated := strings.NewReplacer(`"a1"`, `"a2"`, `"userAgent":"kms-health-reporter"`, `"userAgent":"kmsharness-attempt"`).Replace(harness)
	for _, line := range []string{harness, imitated} {
		if err := r.Line("cp-1", []byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	events := log.Events()
	if len(events) != 2 || events[0].Request.Reporter() != "" || events[1].Request.Reporter() != "cp-1" {
		t.Fatalf("recorded %+v", events)
	}
}

func TestRecorderTellsOfWritesWithoutAnAnswer(t *testing.T) {
	log := history.NewLog(nil)
	r := audit.Recorder{Sink: log, Identity: audit.SystemUnderTest, Resource: func(string) bool { return false }}
	received := strings.ReplaceAll(strings.Replace(apply, "ResponseComplete", "RequestReceived", 1), "\n", "")
	answered := strings.ReplaceAll(apply, "\n", "")
	killed := strings.Replace(strings.Replace(received, `"code":200`, `"code":0`, 1), `"a1"`, `"a2"`, 1)
	for _, line := range []string{received, killed, answered} {
		if err := r.Line("cp-1", []byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	r.Unanswered()
	r.Unanswered()
	events := log.Events()
	if len(events) != 2 || events[0].Request.Code != 200 || events[1].Request.AuditID != "a2" || events[1].Request.Code != 0 {
		t.Fatalf("recorded %+v", events)
	}
}

// A killed API server leaves the beginning of a line, and the next one writes behind it.
func TestRecorderReadsBehindATornLine(t *testing.T) {
	log := history.NewLog(nil)
	r := audit.Recorder{Sink: log, Identity: audit.SystemUnderTest, Resource: func(string) bool { return false }}
	whole := strings.ReplaceAll(apply, "\n", "")
	for _, cut := range []int{1, 30, len(whole) / 2, len(whole) - 1} {
		if err := r.Line("cp-1", []byte(whole[:cut]+whole)); err != nil {
			t.Errorf("cut after %d bytes: %v", cut, err)
		}
	}
	if n := len(log.Events()); n != 4 {
		t.Errorf("%d events, expected 4", n)
	}
	for _, bad := range []string{whole[:30], whole[:30] + "garbage", "garbage" + whole[:30]} {
		if err := r.Line("cp-1", []byte(bad)); err == nil {
			t.Errorf("%q: expected an error", bad)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(line("", ""))
	f.Add([]byte(`{"auditID":"x","verb":"patch","stage":"Panic","requestURI":"%%"}`))
	f.Fuzz(func(t *testing.T, b []byte) { _, _, _ = audit.Decode("cp-1", b) })
}

// Reads of what may be an envelope operation are recorded where somebody asks for them, and nowhere else.
func TestRecorderAlsoRecordsWhatIsAskedFor(t *testing.T) {
	read := []byte(`{"kind":"Event","auditID":"a1","stage":"ResponseComplete","verb":"get","user":{"username":"u"},"responseStatus":{"code":200},` +
		`"objectRef":{"resource":"secrets","namespace":"default","name":"a"}}`)
	for namespace, want := range map[string]int{"default": 1, "kube-system": 0} {
		log := history.NewLog(nil)
		r := audit.Recorder{Sink: log, Identity: audit.SystemUnderTest, Resource: func(string) bool { return false },
			Also: func(r *history.Request) bool { return r.Resource == "secrets" && r.Namespace == namespace }}
		if err := r.Line("cp-1", read); err != nil {
			t.Fatal(err)
		}
		if n := len(log.Events()); n != want {
			t.Errorf("of %s: %d recorded, want %d", namespace, n, want)
		}
	}
}
