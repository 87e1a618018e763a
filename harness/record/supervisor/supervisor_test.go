package supervisor_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	record "github.com/kmsharness/kmsharness/harness/record/supervisor"
	"github.com/kmsharness/kmsharness/harness/supervisor"
)

func TestRecord(t *testing.T) {
	log := history.NewLog(nil)
	r := record.Recorder{Sink: log, Identity: history.Process{Role: history.RolePlugin, Node: "cp-1", KeyID: "2"}}
	at, code := time.Date(2026, 5, 8, 12, 0, 0, 123456789, time.UTC), 137
	line, err := json.Marshal(supervisor.Line{Time: at, State: history.ProcessKilled, PID: 7, ExitCode: &code, Detail: "signal killed"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Line(line); err != nil {
		t.Fatal(err)
	}
	events := log.Events()
	want := history.Process{Role: "plugin", Node: "cp-1", KeyID: "2", PID: 7, State: "killed", Detail: "signal killed"}
	if len(events) != 1 || !events[0].At.Equal(at) || *events[0].Process != want || events[0].Source != "supervisor/plugin/cp-1" {
		t.Errorf("%+v", events)
	}
}

func TestRecordAStall(t *testing.T) {
	log := history.NewLog(nil)
	r := record.Recorder{Sink: log, Identity: history.Process{Role: history.RoleReporter, Node: "cp-1"}}
	if err := r.Line([]byte(`{"time":"2026-05-08T12:00:00.74Z","state":"stalled","from":"2026-05-08T12:00:00Z"}`)); err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
	events := log.Events()
	want := history.Starvation{Role: "reporter", Node: "cp-1", From: from, To: from.Add(740 * time.Millisecond)}
	if len(events) != 1 || events[0].Kind != history.KindStarvation || !events[0].At.Equal(want.To) || *events[0].Starvation != want {
		t.Errorf("%+v", events)
	}
}

func TestGarbageIsNamed(t *testing.T) {
	log := history.NewLog(nil)
	r := record.Recorder{Sink: log}
	for _, line := range []string{
		"", "{", "{}", "[]", `{"time":"2026-05-08T12:00:00Z","state":"ready","pid":7}`,
		`{"time":"2026-05-08T12:00:00Z","state":"stalled"}`, `{"time":"2026-05-08T12:00:00Z","state":"stalled","from":"2026-05-08T12:00:00Z"}`,
		`{"state":"started","pid":7}`, `{"time":"2026-05-08T12:00:00Z","state":"started"}`,
	} {
		if err := r.Line([]byte(line)); err == nil || !strings.Contains(err.Error(), "journal of the supervisor") {
			t.Errorf("%q: %v", line, err)
		}
	}
	if len(log.Events()) != 0 {
		t.Error("garbage was recorded")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"time":"2026-05-08T12:00:00.5Z","state":"exited","pid":7,"exitCode":1,"detail":"exit code 1"}`))
	f.Add([]byte(`{"time":"2026-05-08T12:00:00.5Z","state":"stalled","from":"2026-05-08T12:00:00Z"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := record.Decode(b)
		if p := c.Process; err == nil && (c.At.IsZero() || c.Starvation == nil && (p.State == "" || p.PID <= 0) || c.Starvation != nil && !c.Starvation.From.Before(c.Starvation.To)) {
			t.Errorf("%q: %+v", b, c)
		}
	})
}
