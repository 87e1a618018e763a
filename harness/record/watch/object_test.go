package watch

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/kmsharness/kmsharness/harness/history"
)

// A state has the texts of the one before where they are the same, and its own where not.
func TestStatesShare(t *testing.T) {
	object := func(message string) *history.Object {
		text := strings.Clone
		return &history.Object{Conditions: []*history.Condition{{Type: text("A"), Status: text("True"), Message: text("as before")}, {Type: text("B"), Message: text(message)}},
			Owners: map[string][]string{text("condition/A"): {text("manager")}}}
	}
	before, after := object("1"), object("2")
	share(after, before)
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
