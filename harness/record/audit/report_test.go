package audit_test

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/audit"
)

// An apply is the report of a node if it has the entries of that node and nothing else.
func TestReportIn(t *testing.T) {
	const own, other = `{"type":"KMSHealthReporter_cp-1","status":"True"}`, `{"type":"KMSHealthReporter_cp-2"}`
	const item, otherItem = `{"nodeName":"cp-1","keyID":"1"}`, `{"nodeName":"cp-2","keyID":"1"}`
	for body, want := range map[string]string{
		`{"status":{"conditions":[` + own + `]}}`:                                                                                       "cp-1",
		`{"status":{"conditions":[` + own + `,` + own + `]}}`:                                                                           "cp-1",
		`{"status":{"encryptionStatus":{"healthReports":[` + item + `,` + item + `]}}}`:                                                 "cp-1",
		`{"status":{"oauthAPIServer":{"encryptionStatus":{"healthReports":[` + item + `]}}}}`:                                           "cp-1",
		`{"status":{"conditions":[` + own + `],"encryptionStatus":{"healthReports":[` + item + `]}}}`:                                   "cp-1",
		`{"status":{"conditions":[` + own + `,` + other + `]}}`:                                                                         "",
		`{"status":{"conditions":[` + own + `,` + other + `,` + own + `]}}`:                                                             "",
		`{"status":{"conditions":[` + own + `,{"type":"KMSPluginsDegraded"}]}}`:                                                         "",
		`{"status":{"conditions":[{"type":"Degraded"}]}}`:                                                                               "",
		`{"status":{"conditions":[{"type":"KMSPluginsDegraded"},{"type":"KMSPluginsAvailable"}]}}`:                                      "",
		`{"status":{"conditions":[` + own + `],"encryptionStatus":{"healthReports":[` + otherItem + `]}}}`:                              "",
		`{"status":{"conditions":[{"type":"KMSHealthReporter_"}]}}`:                                                                     "",
		`{"status":{"readyNodes":["cp-1"],"replicas":[{"nodeName":"cp-1"}]}}`:                                                           "",
		`[{"op":"remove","path":"/status/conditions/0"}]`:                                                                               "",
		`{"status":{"conditions":"KMSHealthReporter_cp-1"}}`:                                                                            "",
		`{"status":{"encryptionStatus":{"healthReports":[` + item + `]},"oauthAPIServer":{"encryptionStatus":{"healthReports":null}}}}`: "cp-1",
		`{"status":`: "",
		`null`:       "",
		``:           "",
	} {
		if got := audit.ReportIn([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// What an aggregator writes for a reporter that streams is that reporter's. An API server that was killed logs no body: then the field manager tells,
// once a report was written under it.
func TestRecorderAttributesReports(t *testing.T) {
	const body = `{"apiVersion":"operator.openshift.io/v1","kind":"KubeAPIServer"}`
	relayed := func(changes ...string) string {
		text := strings.NewReplacer("\n", "", "system:kms-health-reporter:cp-1", contract.AggregatorIdentity,
			body, `{"status":{"conditions":[{"type":"KMSHealthReporter_cp-1"}]}}`).Replace(apply)
		return strings.NewReplacer(changes...).Replace(text)
	}
	killed := func(text string) string {
		i := strings.Index(text, `"requestObject"`)
		j := strings.Index(text, `"requestReceivedTimestamp"`)
		return strings.NewReplacer("ResponseComplete", "RequestReceived", `"a1"`, `"a2"`).Replace(text[:i] + text[j:])
	}
	for name, c := range map[string]struct {
		lines   []string
		streams bool
		want    []string
	}{
		"a report":                    {[]string{relayed()}, true, []string{"cp-1"}},
		"reporters that apply":        {[]string{relayed()}, false, []string{""}},
		"a rollup":                    {[]string{relayed("KMSHealthReporter_cp-1", "KMSPluginsDegraded")}, true, []string{""}},
		"a reporter's own":            {[]string{strings.ReplaceAll(apply, "\n", "")}, true, []string{""}},
		"killed, after a report":      {[]string{relayed(), killed(relayed())}, true, []string{"cp-1", "cp-1"}},
		"killed, before any report":   {[]string{killed(relayed())}, true, []string{""}},
		"killed, another manager":     {[]string{relayed(), killed(relayed("kms-health-reporter-cp-1", "kms-health-aggregator"))}, true, []string{"cp-1", ""}},
		"killed, an update":           {[]string{relayed(), killed(relayed(`"patch"`, `"update"`))}, true, []string{"cp-1", ""}},
		"the answer follows the body": {[]string{killed(relayed()), relayed(`"a1"`, `"a2"`)}, true, []string{"cp-1"}},
	} {
		log := history.NewLog(nil)
		r := audit.Recorder{Sink: log, Streams: c.streams, Identity: audit.SystemUnderTest, Resource: func(string) bool { return false }}
		for _, line := range c.lines {
			if err := r.Line("cp-1", []byte(line)); err != nil {
				t.Fatalf("%s: %v: %s", name, err, line)
			}
		}
		r.Unanswered()
		var got []string
		for _, e := range log.Events() {
			got = append(got, e.Request.ReportOf)
		}
		if strings.Join(got, ",") != strings.Join(c.want, ",") || len(got) != len(c.want) {
			t.Errorf("%s: reports of %q, want %q", name, got, c.want)
		}
	}
}
