package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("scrape: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func expectLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
}

func TestCountersExistBeforeAnythingHappened(t *testing.T) {
	text := scrape(t, New("cp-1", []string{"2"}))
	expectLines(t, text,
		`kms_plugin_status_call_errors_total{keyID="2",node="cp-1"} 0`,
		`kms_plugin_status_call_duration_seconds_count{keyID="2",node="cp-1"} 0`,
		`kms_health_reporter_writes_total{node="cp-1",outcome="rejected"} 0`,
		`kms_health_reporter_results_dropped_total{node="cp-1",reason="late"} 0`)
	if strings.Contains(text, "kms_plugin_healthy{") {
		t.Error("kms_plugin_healthy has a value before the first probe")
	}
}

func TestProbesAndWrites(t *testing.T) {
	m := New("cp-1", []string{"2", "1"})
	r := core.Result{KeyID: "2", Duration: 2 * time.Second}
	m.Probed(r, contract.Entry{KeyID: "2", Status: contract.StatusHealthy})
	m.Probed(core.Result{KeyID: "1"}, contract.Entry{KeyID: "1", Status: contract.StatusUnhealthy})
	m.Probed(r, contract.Entry{KeyID: "2", Status: contract.StatusError})
	m.Wrote(publish.Applied, time.Second, time.Unix(1000, 500e6))
	m.Wrote(publish.Rejected, time.Second, time.Unix(2000, 0))
	m.Dropped(core.DropLate)
	expectLines(t, scrape(t, m),
		`kms_plugin_healthy{keyID="2",node="cp-1"} 0`,
		`kms_plugin_healthy{keyID="1",node="cp-1"} 0`,
		`kms_plugin_status_call_errors_total{keyID="2",node="cp-1"} 1`,
		`kms_plugin_status_call_errors_total{keyID="1",node="cp-1"} 0`,
		`kms_plugin_status_call_duration_seconds_sum{keyID="2",node="cp-1"} 4`,
		`kms_health_reporter_writes_total{node="cp-1",outcome="applied"} 1`,
		`kms_health_reporter_writes_total{node="cp-1",outcome="rejected"} 1`,
		`kms_health_reporter_last_write_timestamp_seconds{node="cp-1"} 1000.5`,
		`kms_health_reporter_results_dropped_total{node="cp-1",reason="late"} 1`)
}
