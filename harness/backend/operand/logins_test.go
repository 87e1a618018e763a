package operand_test

import (
	"slices"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
)

// A plugin is refused as long as the KMS refuses the content with which it was started, and no longer.
func TestLogIns(t *testing.T) {
	var l operand.LogIns
	start := func(what, plugin string, refused, news bool) {
		t.Helper()
		if r, n := l.Start(plugin); r != refused || n != news {
			t.Errorf("%s: refused %t, news %t; want %t, %t", what, r, n, refused, news)
		}
	}
	refuse := func(what string, refused bool, want ...string) {
		t.Helper()
		if got := l.Refuse(refused); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	start("the first", "cp-1/1", false, false)
	refuse("its content", true, "cp-1/1")
	refuse("the same again", true)
	start("another one with it", "cp-1/2", true, true)
	start("the same plugin again", "cp-1/1", true, false)
	l.Change()
	start("with other content", "cp-1/1", false, true)
	refuse("that is refused, too", true, "cp-1/1")
	refuse("and accepted", false, "cp-1/1")
	start("the other one", "cp-1/2", false, true)
	if l.Content() != 1 {
		t.Errorf("content %d", l.Content())
	}
}
