package operated_test

import (
	"reflect"
	"testing"

	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/harness/backend/operated"
)

// A plugin is refused as long as the KMS refuses the content with which it was started, and no longer.
func TestLogIns(t *testing.T) {
	var l operated.LogIns
	refused := func(plugin string) remotekms.Rule {
		return remotekms.Rule{Caller: plugin, LogIn: remotekms.RefusedAsEver}
	}
	accepted := func(plugin string) remotekms.Rule { return remotekms.Rule{Caller: plugin} }
	start := func(what, plugin string, want *remotekms.Rule) {
		t.Helper()
		if got := l.Start(plugin); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	refuse := func(what string, refuse bool, want ...remotekms.Rule) {
		t.Helper()
		if got := l.Refuse(refuse); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	one, two := refused("cp-1/1"), refused("cp-1/2")
	start("the first", "cp-1/1", nil)
	refuse("its content", true, one)
	refuse("the same again", true)
	start("another one with it", "cp-1/2", &two)
	start("the same plugin again", "cp-1/1", nil)
	l.Change()
	again := accepted("cp-1/1")
	start("with other content", "cp-1/1", &again)
	refuse("that is refused, too", true, one)
	refuse("and accepted", false, accepted("cp-1/1"))
	start("the other one", "cp-1/2", &remotekms.Rule{Caller: "cp-1/2"})
	if l.Content() != 1 {
		t.Errorf("content %d", l.Content())
	}
}
