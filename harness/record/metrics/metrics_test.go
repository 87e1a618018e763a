package metrics

import (
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/metrics"
)

type sink struct{ payloads []any }

func (s *sink) Record(_ time.Time, _ string, payload any) { s.payloads = append(s.payloads, payload) }

// TestScrapeOfTheReporter reads what the real reporter serves, and records it when it changes.
func TestScrapeOfTheReporter(t *testing.T) {
	m := metrics.New("cp-1", []string{"2", "1"})
	server := httptest.NewServer(m.Handler())
	defer server.Close()
	out := &sink{}
	r := &Recorder{Sink: out, Node: "cp-1", URL: server.URL, Client: server.Client()}
	scrape := func() {
		t.Helper()
		if err := r.Scrape(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	scrape()
	scrape() // nothing changed
	m.Probed(core.Result{KeyID: "1", Duration: 2 * time.Second}, contract.Entry{Status: contract.StatusError})
	m.Probed(core.Result{KeyID: "2", Duration: time.Second}, contract.Entry{Status: contract.StatusHealthy})
	scrape()
	yes, no := true, false
	want := []any{
		&history.Metrics{Node: "cp-1", Plugins: []history.PluginMetrics{{KeyID: "1"}, {KeyID: "2"}}},
		&history.Metrics{Node: "cp-1", Plugins: []history.PluginMetrics{
			{KeyID: "1", Healthy: &no, Calls: 1, Errors: 1, Seconds: 2}, {KeyID: "2", Healthy: &yes, Calls: 1, Seconds: 1}}},
	}
	if !reflect.DeepEqual(out.payloads, want) {
		t.Errorf("recorded %+v, want %+v", out.payloads, want)
	}
}

func TestParseIgnoresWhatIsNotTheNodes(t *testing.T) {
	got, err := Parse("cp-1", expfmt.NewDecoder(strings.NewReader(
		"kms_plugin_healthy{node=\"cp-2\",keyID=\"1\"} 1\nkms_plugin_healthy 1\nother{node=\"cp-1\",keyID=\"1\"} 1\n"+
			"# TYPE kms_plugin_status_call_errors_total counter\nkms_plugin_status_call_errors_total{node=\"cp-1\",keyID=\"7\"} NaN\n"), expfmt.NewFormat(expfmt.TypeTextPlain)))
	if err != nil || !reflect.DeepEqual(got.Plugins, []history.PluginMetrics{{KeyID: "7"}}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestScrapeErrors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/text" {
			_, _ = w.Write([]byte("not { metrics"))
			return
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	out := &sink{}
	for path, want := range map[string]string{"/": "418", "/text": "metrics of the reporter on cp-1"} {
		r := &Recorder{Sink: out, Node: "cp-1", URL: server.URL + path, Client: server.Client()}
		if err := r.Scrape(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	server.Close()
	r := &Recorder{Sink: out, Node: "cp-1", URL: server.URL, Client: server.Client()}
	if err := r.Scrape(context.Background()); err == nil || len(out.payloads) != 0 {
		t.Errorf("a reporter that is gone: %v, recorded %v", err, out.payloads)
	}
}
