package supervisor_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/supervisor"
)

func TestDecodeLine(t *testing.T) {
	at, code := time.Date(2026, 5, 8, 12, 0, 0, 123456789, time.UTC), 137
	line, err := json.Marshal(supervisor.Line{Time: at, State: history.ProcessKilled, PID: 7, ExitCode: &code, Detail: "signal killed"})
	if err != nil {
		t.Fatal(err)
	}
	when, p, err := supervisor.DecodeLine(line)
	if want := (history.Process{PID: 7, State: "killed", Detail: "signal killed"}); err != nil || !when.Equal(at) || p != want {
		t.Errorf("%v, %+v, %v", when, p, err)
	}
	for _, line := range []string{
		"", "{", "{}", "[]", `{"time":"2026-05-08T12:00:00Z","state":"ready","pid":7}`,
		`{"state":"started","pid":7}`, `{"time":"2026-05-08T12:00:00Z","state":"started"}`,
	} {
		if _, _, err := supervisor.DecodeLine([]byte(line)); err == nil || !strings.Contains(err.Error(), "journal of the supervisor") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func FuzzDecodeLine(f *testing.F) {
	f.Add([]byte(`{"time":"2026-05-08T12:00:00.5Z","state":"exited","pid":7,"exitCode":1,"detail":"exit code 1"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if at, p, err := supervisor.DecodeLine(b); err == nil && (at.IsZero() || p.State == "" || p.PID <= 0) {
			t.Errorf("%q: %v, %+v", b, at, p)
		}
	})
}
