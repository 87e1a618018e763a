package timeline

import (
	"bytes"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
)

// The file is one that openshift/origin's EventsFromJSON reads: levels, locators and times as there.
func TestIntervals(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 11, 30, 12, 0, s, 5e8, time.UTC) }
	object := func(s int, status string) history.Event {
		return history.Event{At: at(s), Object: &history.Object{Resource: "clusteroperators.config.openshift.io", Name: "kube-apiserver",
			Conditions: []*history.Condition{{Type: "Degraded", Status: status, Reason: "PluginUnhealthy", Message: "cp-1"}, {Type: "Available", Status: "True"}}}}
	}
	events := []history.Event{object(1, "False"), object(2, "True"), object(3, "True"), object(5, "False"), object(7, "True"), {At: at(9)}}
	v := check.Verdict{Invariants: []check.Result{{ID: "CADENCE", Violations: []check.Violation{{Rule: "silent", Node: "cp-2", At: at(4), Seen: "nothing", Allowed: "a write"}}}}}
	var got bytes.Buffer
	if err := Write(&got, Of(events, v, "kube-apiserver")); err != nil {
		t.Fatal(err)
	}
	warning := func(from, to string) string {
		return `
        {
            "level": "Warning",
            "display": true,
            "source": "KMSHealth",
            "locator": {
                "type": "ClusterOperator",
                "keys": {
                    "clusteroperator": "kube-apiserver"
                }
            },
            "message": {
                "reason": "PluginUnhealthy",
                "cause": "",
                "humanMessage": "Degraded: cp-1",
                "annotations": {
                    "reason": "PluginUnhealthy"
                }
            },
            "from": "2026-11-30T12:00:0` + from + `Z",
            "to": "2026-11-30T12:00:0` + to + `Z"
        }`
	}
	want := `{
    "items": [` + warning("2", "5") + `,
        {
            "level": "Error",
            "display": true,
            "source": "KMSHealth",
            "locator": {
                "type": "Node",
                "keys": {
                    "node": "cp-2"
                }
            },
            "message": {
                "reason": "CADENCE/silent",
                "cause": "",
                "humanMessage": "nothing; allowed: a write",
                "annotations": {
                    "reason": "CADENCE/silent"
                }
            },
            "from": "2026-11-30T12:00:04Z",
            "to": "2026-11-30T12:00:05Z"
        },` + warning("7", "9") + `
    ]
}
`
	if got.String() != want {
		t.Errorf("got %s\nwant %s", got.String(), want)
	}
}
