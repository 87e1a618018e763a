package history

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/kmsharness/kmsharness/contract"
)

// A state has the texts of the one before where they are the same, and its own where not.
func TestStatesShare(t *testing.T) {
	object := func(message string) *Object {
		text := strings.Clone
		return &Object{Conditions: []*Condition{{Type: text("A"), Status: text("True"), Message: text("as before")}, {Type: text("B"), Message: text(message)}},
			Owners: map[string][]string{text("condition/A"): {text("manager")}}}
	}
	before, after := object("1"), object("2")
	after.Share(before)
	if want := object("2"); !reflect.DeepEqual(after, want) {
		t.Errorf("got %v, want %v", after, want)
	}
	same := func(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }
	if a, b := after.Conditions, before.Conditions; !same(a[0].Message, b[0].Message) || !same(a[1].Type, b[1].Type) || same(a[1].Message, b[1].Message) {
		t.Error("what is the same is not shared, or what is not is")
	}
	if after.Owners["condition/A"] = append(after.Owners["condition/A"], "x"); len(before.Owners["condition/A"]) != 2 {
		t.Error("owners are not shared")
	}
}

// A history of a hundred nodes has ten thousand states in an hour: one that shared texts alone would take some 20 kB.
func TestStatesOfManyNodesAreSmall(t *testing.T) {
	const nodes, states, most = 100, 300, 4 << 10
	state := func(n int) *Object {
		o := &Object{}
		for node := range nodes {
			written := (n-node+nodes)/nodes*nodes + node // by now
			o.Conditions = append(o.Conditions, &Condition{Type: fmt.Sprint("condition of ", node), Status: "True", Message: fmt.Sprint(strings.Repeat("x", 150), written)})
			o.HealthReports = append(o.HealthReports, &contract.TypedReport{NodeName: fmt.Sprint("node ", node), LastCheckedTime: fmt.Sprint("time ", written)})
		}
		return o
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	all := []*Object{state(0)}
	before := heap()
	for n := range states {
		o := state(n + 1)
		o.Share(all[len(all)-1])
		all = append(all, o)
	}
	if got := (heap() - before) / states; got > most {
		t.Errorf("a state takes %d bytes, expected at most %d", got, most)
	}
	runtime.KeepAlive(all)
}
