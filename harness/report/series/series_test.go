package series

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

func TestSeriesOfAHistory(t *testing.T) {
	yes, no := true, false
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s int, p ...history.PluginMetrics) history.Event {
		return history.Event{At: began.Add(time.Duration(s) * time.Second), Metrics: &history.Metrics{Node: "cp-1", Plugins: p}}
	}
	got := Of([]history.Event{
		{At: began},
		at(31, history.PluginMetrics{KeyID: "1"}),
		at(40, history.PluginMetrics{KeyID: "1", Healthy: &yes, Calls: 1, Seconds: 1}),
		at(70, history.PluginMetrics{KeyID: "1", Healthy: &no, Calls: 2, Errors: 1, Seconds: 11}),
		at(100, history.PluginMetrics{KeyID: "1", Healthy: &no, Calls: 3, Errors: 2, Seconds: 21}),
		at(130, history.PluginMetrics{KeyID: "1", Healthy: &yes, Calls: 1, Seconds: 1}), // restarted
		{At: began.Add(150 * time.Second)},
	}, 30*time.Second)
	want := map[string]string{
		`kms_plugin_healthy{job="reporter", node="cp-1", keyID="1"}`:                                     "_x2 1 0x1 1x1",
		`kms_plugin_status_call_errors_total{job="reporter", node="cp-1", keyID="1"}`:                    "_x2 0 1 2 0x1",
		`kms_plugin_status_call_duration_seconds_count{job="reporter", node="cp-1", keyID="1"}`:          "_x2 1 2 3 1x1",
		`kms_plugin_status_call_duration_seconds_bucket{job="reporter", node="cp-1", keyID="1", le="5"}`: "_x2 1x4",
	}
	if len(got) != len(want) {
		t.Errorf("%d series, want %d", len(got), len(want))
	}
	for _, s := range got {
		if s.Notation() != want[s.Selector()] {
			t.Errorf("%s: %s, want %s", s.Selector(), s.Notation(), want[s.Selector()])
		}
	}
	if Of(nil, time.Second) != nil {
		t.Error("series of nothing")
	}
}
