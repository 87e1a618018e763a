package check

import (
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// An answer that came after the deadline of a probe is no proof that a reporter was right to wait for it: the violation says how late it was.
func TestAnswerAfterTheDeadline(t *testing.T) {
	v := noFacts()
	v.run.Timing = contract.DefaultTiming()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	late := v.run.Timing.ProbeTimeout + 3*time.Second
	for took, want := range map[time.Duration]string{time.Second: "", late: "after " + short(late) + ", later than the deadline of a probe (" + short(v.run.Timing.ProbeTimeout) + ")"} {
		c := &history.Call{Outcome: history.CallOK, Code: "OK", Healthz: "ok", KEKID: "kek-1", Version: "v2", Began: began, Ended: began.Add(took)}
		got, _ := compareEntry(v, entry{status: contract.StatusHealthy, kekID: "kek-1"}, readProbe(c, 1, v.run.Timing.ProbeTimeout, 0), &report{})
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("after %s: %q, expected %q", took, got, want)
		}
	}
}
