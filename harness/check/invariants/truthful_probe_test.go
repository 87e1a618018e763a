package invariants

import (
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// An answer that came after the deadline of a probe is no proof that a reporter was right to wait for it: the violation says how late it was.
func TestAnswerAfterTheDeadline(t *testing.T) {
	v := facts.New(nil)
	began, timeout := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), v.ProbeTimeout
	late := timeout + 3*time.Second
	for took, want := range map[time.Duration]string{time.Second: "", late: "after " + text.Short(late) + ", later than the deadline of a probe (" + text.Short(timeout) + ")"} {
		log := history.NewLog(nil)
		log.Record(began, "journal/cp-1/1", &history.Call{Method: "Status", Outcome: history.CallOK, Code: "OK", Healthz: "ok", KEKID: "kek-1", Version: "v2", Began: began, Ended: began.Add(took)})
		probe := facts.New(log.Events()).Plugins.All[0].Probes[0]
		got, _ := compareEntry(v, facts.Entry{Status: contract.StatusHealthy, KEKID: "kek-1"}, probe, &facts.Report{})
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("after %s: %q, expected %q", took, got, want)
		}
	}
}
