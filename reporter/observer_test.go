package reporter

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/metrics"
)

func observe(verbosity int, results ...core.Result) []string {
	var log bytes.Buffer
	o := NewObserver(NewLogger(&log, "json", verbosity), metrics.New("cp-1", []string{"2"}))
	for _, r := range results {
		o.Probed(r, r.Entry(time.Second))
	}
	if log.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
}

func said(healthz, keyID string) core.Result {
	return core.Result{KeyID: "2", Started: start, Answer: &core.Answer{Version: "v2", Healthz: healthz, KeyID: keyID}}
}

func TestOnlyChangesAreLogged(t *testing.T) {
	results := []core.Result{said("ok", "a"), said("ok", "a"), said("sealed", "a"), said("still sealed", "a"), said("ok", "b"), said("ok", "b")}
	lines := observe(0, results...)
	want := []string{`"INFO"`, `"WARN"`, `"INFO"`}
	if len(lines) != len(want) {
		t.Fatalf("%d lines, expected %d:\n%s", len(lines), len(want), strings.Join(lines, "\n"))
	}
	for i, level := range want {
		if !strings.Contains(lines[i], level) {
			t.Errorf("line %d: %s, expected level %s", i, lines[i], level)
		}
	}
	if n := len(observe(debugVerbosity, results...)); n != len(results) {
		t.Errorf("%d lines at debug level, expected one for each of %d probes", n, len(results))
	}
}

func TestHostileTextStaysInItsField(t *testing.T) {
	hostile := "x\"}\n{\"level\":\"INFO\",\"msg\":\"forged\"}\x1b[2J\u202e"
	lines := observe(0, said(hostile, hostile))
	if len(lines) != 1 {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	var line map[string]string
	if err := json.Unmarshal([]byte(lines[0]), &line); err != nil || line["msg"] != "probed plugin" {
		t.Fatalf("%v: %s", err, lines[0])
	}
	for _, field := range []string{"detail", "kekID"} {
		if line[field] != contract.SafeDetail(hostile) {
			t.Errorf("%s is %q", field, line[field])
		}
	}
}

// TestHealthzAndMetricsAreServed covers the listener, both paths and a clean end.
func TestHealthzAndMetricsAreServed(t *testing.T) {
	m := metrics.New("cp-1", []string{"2"})
	o := NewObserver(NewLogger(io.Discard, "text", 0), m)
	now := start
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, listener, handler(m, o, time.Second, func() time.Time { return now }))
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	expect := func(path string, code int, text string) {
		t.Helper()
		response, err := client.Get("http://" + listener.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		if response.StatusCode != code || !strings.Contains(string(body), text) {
			t.Errorf("%s: %d %s, expected %d with %q", path, response.StatusCode, body, code, text)
		}
	}
	expect("/healthz", 200, "ok") // no tick was due yet
	o.TickBegan(now)
	now = now.Add(4 * time.Second)
	expect("/healthz", 200, "ok")
	now = now.Add(time.Millisecond)
	expect("/healthz", 500, "no tick began within the last 4s")
	expect("/metrics", 200, "kms_plugin_status_call_errors_total")
	expect("/", 404, "")
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("after the end: %v", err)
	}
}

func TestServeReportsAListenerThatFails(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if err := serve(t.Context(), listener, http.NotFoundHandler()); err == nil || !strings.Contains(err.Error(), "serve metrics on 127.0.0.1:") {
		t.Errorf("error %v", err)
	}
}

func TestJitterStaysWithinItsLimit(t *testing.T) {
	jitter := jitter(host.Host{}.Random())
	seen := map[bool]bool{}
	for range 1000 {
		j := jitter(time.Second)
		if j < -time.Second || j > time.Second {
			t.Fatalf("jitter %v", j)
		}
		seen[j > 0] = true
	}
	if jitter(0) != 0 || !seen[true] || !seen[false] {
		t.Errorf("jitter(0) = %v, both directions: %v", jitter(0), seen)
	}
}
