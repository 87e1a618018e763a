package invariants

import (
	"crypto/sha256"
	"fmt"
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

// TestKEKsOfAPIServers: what API servers have from their plugins judges an observed cluster, as soon as all of them had time to ask and were asked.
func TestKEKsOfAPIServers(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	hash := func(kekID string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(kekID))) }
	for name, c := range map[string]struct {
		reports func(minute int) string // the kekID, of cp-1
		asked   []string                // API servers, one a minute
		had     []string                // kekIDs that they had
		want    int
	}{
		"had":                        {func(int) string { return "a" }, []string{"1", "2"}, []string{"a"}, 0},
		"had, and rotated":           {func(m int) string { return string("ab"[m/6]) }, []string{"1", "2"}, []string{"a", "b"}, 0},
		"invented":                   {func(int) string { return "a" }, []string{"1", "2"}, []string{"b"}, 1},
		"invented twice":             {func(m int) string { return string("xy"[m/6]) }, []string{"1", "2"}, []string{"b"}, 2},
		"gone before they asked":     {func(m int) string { return string("bxb"[min(2, m/2)]) }, []string{"1", "2"}, []string{"b"}, 0},
		"not all were asked":         {func(int) string { return "a" }, []string{"1", "1"}, []string{"b"}, 0},
		"an error of a plugin":       {func(int) string { return "" }, []string{"1", "2"}, []string{"b"}, 0},
		"nobody has KMS, or says so": {func(int) string { return "a" }, []string{"1", "2"}, nil, 0},
	} {
		log := history.NewLog(nil)
		log.Record(start, "observe", &history.Run{Operator: "kubeapiservers", Observed: true, Tolerance: time.Second, Timing: contract.DefaultTiming()})
		log.Record(start, "observe", &history.Expected{KMSActive: true, Nodes: []history.ExpectedNode{{Name: "cp-1"}, {Name: "cp-2"}}})
		for minute := range 12 {
			at, keks := start.Add(time.Duration(minute)*time.Minute), &history.KEKs{ID: c.asked[minute%2]}
			for _, kekID := range c.had {
				keks.Hashes = append(keks.Hashes, hash(kekID))
			}
			log.Record(at, "observe", keks)
			message := `[{"keyID":"1","kekID":"` + c.reports(minute) + `","status":"healthy","lastChecked":"` + contract.FormatTime(at) + `"}]`
			log.Record(at.Add(time.Second), "watch", &history.Object{Resource: "kubeapiservers.operator.openshift.io", Name: "cluster",
				Conditions: []*history.Condition{{Type: contract.ConditionType("cp-1"), Status: "True", Message: message}}})
		}
		f := judgeTruthfulProbe(facts.New(log.Events()))
		if len(f.Violations) != c.want || c.want > 0 && (f.Violations[0].Rule != "kek-unknown" || f.Violations[0].Node != "cp-1") {
			t.Errorf("%s: %d violations, want %d: %+v", name, len(f.Violations), c.want, f.Violations)
		}
	}
}
