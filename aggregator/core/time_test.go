package core

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

func (w *world) expect(conditionType, want string) {
	w.t.Helper()
	if got := says(Read(w.cr, w.op).Conditions, conditionType); got != want {
		w.t.Errorf("at +%v: %s is %q, want %q", w.now.Sub(noon()), conditionType, got, want)
	}
}

func (w *world) pass(d time.Duration) Decision {
	w.now = w.now.Add(d)
	return w.step()
}

func TestTransitionTimeMovesOnlyWithStatus(t *testing.T) {
	w := newWorld(t, "cp-1")
	w.report("cp-1", 0, failed("1", contract.StatusUnhealthy, "a"))
	w.step()
	began := transition(w)
	w.now = w.now.Add(5 * time.Second)
	w.report("cp-1", 0, failed("1", contract.StatusError, "b"))
	w.step()
	w.expect(contract.ConditionDegraded, "True/PluginUnreachable")
	if got := transition(w); !got.Equal(began) {
		t.Errorf("moved from %v to %v while the status stayed True", began, got)
	}
	w.now = w.now.Add(5 * time.Second)
	w.report("cp-1", 0, healthy("1", "k"))
	w.step()
	if got := transition(w); !got.Equal(w.now) {
		t.Errorf("got %v, want the instant at which the status changed, %v", got, w.now)
	}
}

func transition(w *world) time.Time {
	c, _ := find(Read(w.cr, w.op).Conditions, contract.ConditionDegraded)
	return c.LastTransitionTime
}

func TestGraceOfANewNode(t *testing.T) {
	w := newWorld(t)
	w.step()
	w.now = w.now.Add(10 * time.Second)
	w.nodes["new"] = w.now.Truncate(time.Second)
	w.step()
	w.expect(contract.ConditionDegraded, "False/AwaitingFirstReport")
	w.pass(4 * testInterval)
	w.expect(contract.ConditionDegraded, "False/AwaitingFirstReport")
	w.pass(instant)
	w.expect(contract.ConditionDegraded, "Unknown/ReportMissing")
	w.expect(contract.ConditionAvailable, "Unknown/WriteKeyUnknown")
}

// A restart in the middle of a grace neither ends it early nor begins it again.
func TestGraceAcrossARestart(t *testing.T) {
	w := newWorld(t, "cp-1")
	w.memory = Memory{} // the very first aggregator: KMS became active just now, the node is old
	w.step()
	w.pass(3 * testInterval)
	w.memory = Memory{}
	w.step()
	w.expect(contract.ConditionDegraded, "False/AwaitingFirstReport")
	w.pass(testInterval + second + instant)
	w.expect(contract.ConditionDegraded, "Unknown/ReportMissing")
	w.memory = Memory{}
	w.step()
	w.expect(contract.ConditionDegraded, "Unknown/ReportMissing")
}

func TestGraceAfterAReportVanished(t *testing.T) {
	w := newWorld(t, "cp-1")
	w.report("cp-1", 0, healthy("1", "k"))
	w.step()
	w.cr = patched(t, w.cr, RemovalPatch(w.cr, w.op, Removal{Nodes: []string{"cp-1"}}))
	w.pass(time.Second)
	w.expect(contract.ConditionDegraded, "False/AwaitingFirstReport")
	w.pass(4*testInterval + instant)
	w.expect(contract.ConditionDegraded, "Unknown/ReportMissing")
}

func TestGoneNode(t *testing.T) {
	for _, typed := range []bool{false, true} {
		w := newWorld(t, "cp-1", "cp-2")
		w.typedForm = typed
		w.report("cp-1", 0, healthy("1", "k"))
		w.report("cp-2", 0, failed("1", contract.StatusError, "x"))
		w.step()
		delete(w.nodes, "cp-2")
		w.step()
		w.present("cp-2", false)
		w.now = w.now.Add(testInterval)
		w.report("cp-1", 0, healthy("1", "k"))
		w.report("cp-2", 0, failed("1", contract.StatusError, "late"))
		w.step()
		w.present("cp-2", true) // no fight with a writer that is still there
		w.expect(contract.ConditionDegraded, "False/AsExpected")
		if want := w.now.Add(4*testInterval + instant); !w.decision.NextWake.Equal(want) {
			t.Errorf("next wake at %v, want %v", w.decision.NextWake, want)
		}
		w.pass(4 * testInterval)
		w.present("cp-2", true)
		w.pass(instant)
		w.present("cp-2", false)
	}
}

func (w *world) present(node string, want bool) {
	w.t.Helper()
	if _, got := Read(w.cr, w.op).Reports[node]; got != want {
		w.t.Errorf("at +%v: report of %s present: %v, want %v", w.now.Sub(noon()), node, got, want)
	}
}

// An orphan that nobody can read, or that claims a time to come, goes 4 intervals after it was last written.
func TestOrphanWithoutABelievableTime(t *testing.T) {
	w := newWorld(t)
	w.message("junk", "{")
	w.report("future", -24*time.Hour, healthy("1", "k"))
	w.step()
	w.pass(4 * testInterval)
	w.present("junk", true)
	w.present("future", true)
	w.pass(instant)
	w.present("junk", false)
	w.present("future", false)
}

func TestReportSeenBeforeItsNodeIsNotRemoved(t *testing.T) {
	w := newWorld(t)
	w.report("new", 0, healthy("1", "k"))
	w.step()
	w.nodes["new"] = w.now
	w.step()
	w.present("new", true)
	w.expect(contract.ConditionDegraded, "False/AsExpected")
}

func TestDisabledKMS(t *testing.T) {
	w := newWorld(t, "cp-1")
	w.report("cp-1", 0, failed("1", contract.StatusError, "x"))
	w.step()
	w.active = false
	w.step()
	w.present("cp-1", false)
	for _, c := range contract.RollupTypes() {
		w.expect(c, "")
	}
	if got := says(w.co, "Degraded"); got != "False/AsExpected" {
		t.Errorf("ClusterOperator Degraded is %s", got)
	}
	w.active = true
	w.pass(time.Hour)
	w.expect(contract.ConditionDegraded, "False/AwaitingFirstReport") // old nodes, new KMS
}
