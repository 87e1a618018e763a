package requests_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/audit"
	"github.com/kmsharness/kmsharness/harness/record/requests"
)

func TestParse(t *testing.T) {
	for request, want := range map[string]string{
		"GET /version": "get  / ",
		"GET /apis/operator.openshift.io/v1/kubeapiservers/cluster":                                          "get operator.openshift.io kubeapiservers/cluster ",
		"PATCH /apis/operator.openshift.io/v1/kubeapiservers/cluster/status?force=true":                      "patch operator.openshift.io kubeapiservers/cluster status",
		"GET /apis/operator.openshift.io/v1/kubeapiservers?watch=true&fieldSelector=metadata.name%3Dcluster": "watch operator.openshift.io kubeapiservers/cluster ",
		"GET /apis/operator.openshift.io/v1/kubeapiservers?fieldSelector=metadata.name%3Dcluster":            "list operator.openshift.io kubeapiservers/cluster ",
		"GET /api/v1/nodes": "list  nodes/ ",
		"POST /apis/coordination.k8s.io/v1/namespaces/kms-health/leases":  "create coordination.k8s.io leases/ ",
		"PUT /apis/coordination.k8s.io/v1/namespaces/kms-health/leases/a": "update coordination.k8s.io leases/a ",
		"DELETE /api/v1/namespaces/default/secrets":                       "deletecollection  secrets/ ",
		"DELETE /api/v1/namespaces/default":                               "delete  namespaces/default ",
	} {
		method, at, _ := strings.Cut(request, " ")
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		verb, o := requests.Parse(method, u)
		if got := verb + " " + o.APIGroup + " " + o.Resource + "/" + o.Name + " " + o.Subresource; got != want {
			t.Errorf("%s: %q, want %q", request, got, want)
		}
	}
}

// answer is an API server that gives one answer.
type answer struct {
	code int
	body string
	err  error
}

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		if _, err := io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

// log sends an apply of a reporter to an API server and gives what the recorder of audit logs makes of it.
func log(t *testing.T, a answer) []history.Event {
	t.Helper()
	var text bytes.Buffer
	transport := &requests.Transport{Base: a, Log: &text, Now: time.Now, User: func(*http.Request) string { return contract.ReporterIdentity("cp-1") }}
	body := "apiVersion: operator.openshift.io/v1\nkind: KubeAPIServer\nmetadata: {name: cluster}\n"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch,
		"https://127.0.0.1/apis/operator.openshift.io/v1/kubeapiservers/cluster/status?fieldManager=m&force=true", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(r)
	if a.err == nil {
		if err != nil {
			t.Fatal(err)
		}
		passed, err := io.ReadAll(response.Body)
		if err != nil || string(passed) != a.body {
			t.Errorf("the answer %q became %q, %v", a.body, passed, err)
		}
	}
	events := history.NewLog(nil)
	recorder := audit.Recorder{Sink: events, Identity: audit.SystemUnderTest, Resource: func(string) bool { return true }}
	for line := range strings.Lines(text.String()) {
		if err := recorder.Line("cp-1", []byte(strings.TrimSuffix(line, "\n"))); err != nil {
			t.Fatal(err)
		}
	}
	recorder.Unanswered()
	return events.Events()
}

func TestTheRecorderReadsWhatIsWritten(t *testing.T) {
	events := log(t, answer{code: 200, body: `{"metadata":{"resourceVersion":"77"}}`})
	if len(events) != 1 {
		t.Fatalf("%+v", events)
	}
	r := events[0].Request
	if r.User != contract.ReporterIdentity("cp-1") || r.Verb != "patch" || r.Resource != "kubeapiservers.operator.openshift.io" || r.Subresource != "status" ||
		r.Name != "cluster" || r.FieldManager != "m" || !r.Force || r.Code != 200 || r.ResourceVersion != "77" || r.ContentType != audit.ContentTypeApply {
		t.Errorf("%+v", r)
	}
	refused := log(t, answer{code: 422, body: `{"kind":"Status","message":"is invalid","reason":"Invalid","details":{"causes":[{"field":"status.a"}]}}`})[0].Request
	if refused.Code != 422 || refused.Message != "is invalid" || refused.Reason != "Invalid" || len(refused.Causes) != 1 {
		t.Errorf("%+v", refused)
	}
}

// A write that was sent and not answered is in the log: the API server may have carried it out.
func TestAWriteWithoutAnAnswerIsNotLost(t *testing.T) {
	events := log(t, answer{err: errors.New("connection lost")})
	if len(events) != 1 || events[0].Request.Code != 0 || len(events[0].Request.Body) == 0 {
		t.Errorf("%+v", events)
	}
}
