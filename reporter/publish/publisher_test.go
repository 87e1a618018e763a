package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/reporter/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server records requests and answers as the test says.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []recorded
	get, put func(w http.ResponseWriter, r *http.Request)
}

type recorded struct {
	method, path, query, contentType string
	body                             []byte
}

func answer(code int, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

// refusal is what an API server answers, with the reason that client-go goes by.
func refusal(code int, reason string) func(http.ResponseWriter, *http.Request) {
	return answer(code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no: %s","reason":%q,"code":%d}`, reason, reason, code))
}

func newServer(t *testing.T) *server {
	s := &server{get: answer(200, `{"status":{}}`), put: answer(200, `{}`)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.requests = append(s.requests, recorded{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Content-Type"), body})
		get, put := s.get, s.put
		s.mu.Unlock()
		if r.Method == http.MethodGet {
			get(w, r)
		} else {
			put(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) set(get, put func(http.ResponseWriter, *http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.get, s.put = get, put
}

// seen returns the methods so far, and the last request.
func (s *server) seen() (methods string, last recorded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		methods += r.method + " "
		last = r
	}
	return strings.TrimSpace(methods), last
}

func (s *server) publisher(t *testing.T, operator Operator, form Form) *Publisher {
	t.Helper()
	p, err := New(&rest.Config{Host: s.URL}, nil, operator, form, "cp-1", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func writeWithin(d time.Duration) core.Action {
	return core.Action{Kind: core.Write, Until: time.Now().Add(d), Report: report()}
}

const ample = 20 * time.Second

func transitionTime(t *testing.T, body []byte) string {
	t.Helper()
	var o object
	if err := json.Unmarshal(body, &o); err != nil || len(o.Status.Conditions) != 1 {
		t.Fatalf("body %s: %v", body, err)
	}
	return o.Status.Conditions[0].LastTransitionTime
}

func TestOneForcedApplyToTheStatusSubresource(t *testing.T) {
	for operator, path := range map[Operator]string{
		KubeAPIServer:      "/apis/operator.openshift.io/v1/kubeapiservers/cluster/status",
		OpenShiftAPIServer: "/apis/operator.openshift.io/v1/openshiftapiservers/cluster/status",
		Authentication:     "/apis/operator.openshift.io/v1/authentications/cluster/status",
	} {
		s := newServer(t)
		if err := s.publisher(t, operator, HealthReports).Apply(t.Context(), writeWithin(ample)); err != nil {
			t.Fatal(err)
		}
		methods, r := s.seen()
		if methods != "PATCH" || r.path != path || r.contentType != "application/apply-patch+yaml" {
			t.Errorf("%s: %s to %s as %s", operator, methods, r.path, r.contentType)
		}
		for _, want := range []string{"fieldManager=" + contract.FieldManager("cp-1"), "force=true", "timeout="} {
			if !strings.Contains(r.query, want) {
				t.Errorf("query %s lacks %s", r.query, want)
			}
		}
	}
}

func TestLastTransitionTimeIsKeptAcrossARestart(t *testing.T) {
	const condition = `{"status":{"conditions":[{"type":"Other","status":"True","lastTransitionTime":"2020-01-01T00:00:00Z"},{"type":"KMSHealthReporter_cp-1","status":%q,"lastTransitionTime":%q}]}}`
	for name, tt := range map[string]struct{ status, at, want string }{
		"kept":         {"True", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"},
		"was not True": {"False", "2026-01-02T03:04:05Z", ""},
		"not a time":   {"True", "yesterday", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.set(answer(200, fmt.Sprintf(condition, tt.status, tt.at)), answer(200, `{}`))
			p := s.publisher(t, KubeAPIServer, Conditions)
			var times []string
			for range 2 {
				if err := p.Apply(t.Context(), writeWithin(ample)); err != nil {
					t.Fatal(err)
				}
				_, last := s.seen()
				times = append(times, transitionTime(t, last.body))
			}
			if methods, _ := s.seen(); methods != "GET PATCH PATCH" {
				t.Errorf("requests %s, expected one GET", methods)
			}
			if times[0] != times[1] || (tt.want != "" && times[0] != tt.want) || (tt.want == "" && times[0] == tt.at) {
				t.Errorf("lastTransitionTime %v, expected %q", times, tt.want)
			}
		})
	}
}

func TestWriteIsDroppedWhileTheGetFailsAndTheGetIsRepeated(t *testing.T) {
	s := newServer(t)
	s.set(refusal(404, "NotFound"), refusal(404, "NotFound"))
	p := s.publisher(t, KubeAPIServer, Conditions)
	if err := p.Apply(t.Context(), writeWithin(ample)); OutcomeOf(err) != Missing {
		t.Fatalf("CR missing: %v", err)
	}
	s.set(answer(200, `{}`), answer(200, `{}`))
	if err := p.Apply(t.Context(), writeWithin(ample)); err != nil {
		t.Fatal(err)
	}
	if methods, _ := s.seen(); methods != "GET GET PATCH" {
		t.Errorf("requests %s", methods)
	}
}

func TestForbiddenGetDoesNotSilenceTheReporter(t *testing.T) {
	s := newServer(t)
	s.set(refusal(403, "Forbidden"), answer(200, `{}`))
	p := s.publisher(t, KubeAPIServer, Conditions)
	if err := p.Apply(t.Context(), writeWithin(ample)); OutcomeOf(err) != Rejected {
		t.Errorf("the first refusal was believed: %v", err)
	}
	later := time.Now().Add(startingUp + time.Second)
	p.now = func() time.Time { return later }
	for range 2 {
		if err := p.Apply(t.Context(), writeWithin(ample)); err != nil {
			t.Fatal(err)
		}
	}
	if methods, _ := s.seen(); methods != "GET GET PATCH PATCH" {
		t.Errorf("requests %s", methods)
	}
}

// An API server that starts refuses everything until it knows who may do what, and the time must not move for that. A time in
// which it was not there does not count.
func TestStartingAPIServerDoesNotMoveTheTime(t *testing.T) {
	s := newServer(t)
	p := s.publisher(t, KubeAPIServer, Conditions)
	now := time.Now()
	p.now = func() time.Time { return now }
	for _, get := range []func(http.ResponseWriter, *http.Request){
		refusal(403, "Forbidden"), refusal(503, "ServiceUnavailable"), refusal(403, "Forbidden"), refusal(403, "Forbidden"),
	} {
		s.set(get, answer(200, `{}`))
		if err := p.Apply(t.Context(), writeWithin(ample)); err == nil {
			t.Fatal("a guess was written")
		}
		now = now.Add(startingUp / 2)
	}
	s.set(answer(200, `{"status":{"conditions":[{"type":"KMSHealthReporter_cp-1","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`), answer(200, `{}`))
	if err := p.Apply(t.Context(), writeWithin(ample)); err != nil {
		t.Fatal(err)
	}
	if _, last := s.seen(); transitionTime(t, last.body) != "2026-01-02T03:04:05Z" {
		t.Errorf("the time moved: %s", last.body)
	}
}

func TestRefusalsAreClassifiedAndNotRepeated(t *testing.T) {
	for _, tt := range []struct {
		code    int
		reason  string
		outcome Outcome
	}{
		{404, "NotFound", Missing}, {422, "Invalid", Rejected}, {400, "BadRequest", Rejected}, {403, "Forbidden", Rejected},
		{401, "Unauthorized", Rejected}, {409, "Conflict", Rejected}, {429, "TooManyRequests", Failed}, {500, "InternalError", Failed},
		{503, "ServiceUnavailable", Failed}, {504, "Timeout", Failed},
	} {
		s := newServer(t)
		s.set(answer(200, `{}`), refusal(tt.code, tt.reason))
		err := s.publisher(t, KubeAPIServer, HealthReports).Apply(t.Context(), writeWithin(ample))
		if OutcomeOf(err) != tt.outcome || !strings.Contains(err.Error(), "no: "+tt.reason) {
			t.Errorf("%d: outcome %s of %v, expected %s and the server's words", tt.code, OutcomeOf(err), err, tt.outcome)
		}
		if methods, _ := s.seen(); methods != "PATCH" {
			t.Errorf("%d: requests %s, expected one", tt.code, methods)
		}
	}
}

func TestHangingServerMeetsTheWriteDeadlineAndTheNextWriteWorks(t *testing.T) {
	s := newServer(t)
	release := make(chan struct{})
	s.set(answer(200, `{}`), func(http.ResponseWriter, *http.Request) { <-release })
	p := s.publisher(t, KubeAPIServer, HealthReports)
	began := time.Now()
	err := p.Apply(t.Context(), writeWithin(200*time.Millisecond))
	if OutcomeOf(err) != TimedOut || time.Since(began) > 5*time.Second {
		t.Fatalf("after %v: %v", time.Since(began), err)
	}
	close(release)
	s.set(answer(200, `{}`), answer(200, strings.Repeat("x", 1<<20)))
	if err := p.Apply(t.Context(), writeWithin(ample)); err != nil {
		t.Fatalf("the next write: %v", err)
	}
}

func TestServerDown(t *testing.T) {
	s := newServer(t)
	p := s.publisher(t, KubeAPIServer, HealthReports)
	s.Close()
	if err := p.Apply(t.Context(), writeWithin(ample)); OutcomeOf(err) != Unreachable {
		t.Errorf("outcome %s of %v", OutcomeOf(err), err)
	}
}

func TestPausedPastItsDeadlineSendsNothing(t *testing.T) {
	s := newServer(t)
	p := s.publisher(t, KubeAPIServer, HealthReports)
	later := time.Now().Add(time.Hour)
	p.now = func() time.Time { return later }
	if err := p.Apply(t.Context(), writeWithin(ample)); OutcomeOf(err) != TimedOut {
		t.Errorf("outcome %s of %v", OutcomeOf(err), err)
	}
	if methods, _ := s.seen(); methods != "" {
		t.Errorf("requests %s, expected none", methods)
	}
}

func TestCancelledWriteEnds(t *testing.T) {
	s := newServer(t)
	reached, release := make(chan struct{}), make(chan struct{})
	s.set(answer(200, `{}`), func(http.ResponseWriter, *http.Request) { close(reached); <-release })
	p := s.publisher(t, KubeAPIServer, HealthReports)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reached; cancel() }()
	if err := p.Apply(ctx, writeWithin(ample)); err == nil {
		t.Error("a cancelled write succeeded")
	}
	close(release)
}

func TestLongNodeNamesGetAShortFieldManager(t *testing.T) {
	s := newServer(t)
	node := strings.Repeat("n", 200)
	p, err := New(&rest.Config{Host: s.URL}, nil, KubeAPIServer, HealthReports, node, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if err := p.Apply(t.Context(), writeWithin(ample)); err != nil {
		t.Fatal(err)
	}
	if _, r := s.seen(); !strings.Contains(r.query, "fieldManager="+contract.FieldManager(node)) {
		t.Errorf("query %s", r.query)
	}
}

func TestNewRefusesWhatItCannotUse(t *testing.T) {
	if _, err := New(&rest.Config{Host: "http://x"}, nil, "etcd", Conditions, "cp-1", time.Now); err == nil {
		t.Error("operator etcd was accepted")
	}
	if _, err := New(&rest.Config{Host: "http://%zz"}, nil, KubeAPIServer, Conditions, "cp-1", time.Now); err == nil {
		t.Error("a host that is no URL was accepted")
	}
}
