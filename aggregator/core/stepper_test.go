package core

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kmsharness/kmsharness/contract"
)

// A Stepper decides what Step decides, in a world in which reporters say mostly the same again, and sometimes not, or too late, or
// nothing; nodes come and go, and clocks are wrong.
func TestStepperDecidesWhatStepDecides(t *testing.T) {
	repeated := 0
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, "a", "b", "c")
		w.typedForm = rapid.Bool().Draw(rt, "typed")
		w.union = drawUnion(rt)
		var reader Reader
		var stepper Stepper
		read := reader.Read
		if rapid.Bool().Draw(rt, "over") {
			read = reader.ReadOver
		}
		for range rapid.IntRange(5, 60).Draw(rt, "events") {
			disturb(rt, w)
			in := w.input()
			in.Observed = read(w.cr, w.op)
			if _, same := stepper.repeats(in, w.memory); same {
				repeated++
			}
			got, want := stepper.Step(in, w.memory), Step(w.input(), w.memory)
			if !reflect.DeepEqual(got, want) {
				rt.Fatalf("at %v\ngot  %+v\nwant %+v", w.now, got, want)
			}
			carryOut(w, got)
		}
	})
	if repeated < 5 { // -short has a fifth of the checks
		t.Errorf("%d steps repeated another one, expected many", repeated)
	}
}

func carryOut(w *world, d Decision) {
	w.memory = d.Memory
	for _, c := range d.Rollups {
		if d.WriteRollups {
			w.condition(c)
		}
	}
	if !d.Remove.Empty() {
		w.cr = patched(w.t, w.cr, RemovalPatch(w.cr, w.op, d.Remove))
		w.memory = w.memory.Removed(d.Remove.Nodes...)
	}
	if d.WriteClusterOperator {
		w.co = d.ClusterOperator
	}
}

// disturb lets something happen: mostly another report of the same kind.
func disturb(t *rapid.T, w *world) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 15).Draw(t, "wait")) * time.Second)
	node := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "node")
	kind := rapid.IntRange(0, 79).Draw(t, "event")
	switch {
	case kind == 0:
		w.now = w.now.Add(5 * testInterval)
	case kind == 1:
		w.nodes = maps.Clone(w.nodes)
		w.nodes[rapid.SampledFrom([]string{"a", "d"}).Draw(t, "added")] = w.now.Truncate(time.Second)
	case kind == 2:
		w.nodes = maps.Clone(w.nodes)
		delete(w.nodes, node)
	case kind == 3:
		w.active = !w.active
	case kind == 4:
		w.report(node, time.Duration(rapid.IntRange(-60, 130).Draw(t, "age"))*time.Second, healthy("1", "k"))
	case kind == 5:
		w.report(node, 0, failed("1", contract.StatusError, "no"))
	case kind == 6:
		w.report(node, 0, healthy("2", "k"), healthy("1", "l"))
	case kind == 7:
		w.condition(Condition{Type: "OtherDegraded", Status: rapid.SampledFrom([]string{True, False}).Draw(t, "status"), LastTransitionTime: w.now.Truncate(time.Second)})
	case kind < 10: // nothing but time
	default:
		w.report(node, time.Duration(rapid.IntRange(0, 3).Draw(t, "age"))*time.Second, healthy("1", "k"))
	}
}

// One that forgets that a report was replaced is the known-bad subject: it wakes at another instant.
func TestStepperWakesForTheReportThatStands(t *testing.T) {
	w := newWorld(t, "a", "b")
	var reader Reader
	var stepper Stepper
	step := func() Decision {
		in := w.input()
		in.Observed = reader.Read(w.cr, w.op)
		d := stepper.Step(in, w.memory)
		carryOut(w, d)
		return d
	}
	w.report("a", 0, healthy("1", "k"))
	w.report("b", 0, healthy("1", "k"))
	step()
	first := step().NextWake
	w.now = w.now.Add(10 * time.Second)
	w.report("a", 0, healthy("1", "k"))
	if again := step().NextWake; again != first {
		t.Errorf("wakes at %v, expected %v: the report of b still stands", again, first)
	}
	w.report("b", 0, healthy("1", "k"))
	if later := step().NextWake; later != first.Add(10*time.Second) {
		t.Errorf("wakes at %v, expected 10 s after %v", later, first)
	}
}

// A step with another union repeats nothing.
func TestStepperNoticesAnotherUnion(t *testing.T) {
	w := newWorld(t, "a")
	w.union = contract.Union{Inertia: contract.Inertia{All: time.Minute}}
	w.report("a", 0, healthy("1", "k"))
	w.condition(Condition{Type: "OtherDegraded", Status: True, LastTransitionTime: w.now})
	var reader Reader
	var stepper Stepper
	for _, want := range []string{"False/AsExpected", "False/AsExpected", "True/Other_"} {
		in := w.input()
		in.Observed = reader.Read(w.cr, w.op)
		carryOut(w, stepper.Step(in, w.memory))
		if got := says(w.co, "Degraded"); got != want {
			t.Errorf("ClusterOperator Degraded is %s, want %s", got, want)
		}
		if w.now = w.now.Add(time.Second); w.now.Sub(noon()) == 2*time.Second {
			w.union = contract.Union{}
		}
	}
}
