package invariants

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
)

// TestAnsweredKEK: the history keeps the first 1024 bytes of a kekID, and its size.
func TestAnsweredKEK(t *testing.T) {
	long := strings.Repeat("k", 2000)
	cut := history.Call{KEKID: long[:1024], KEKIDBytes: 2000}
	for _, test := range []struct {
		call   history.Call
		target string
		want   bool
	}{
		{history.Call{KEKID: "k"}, "k", true},
		{history.Call{KEKID: "k"}, "kk", false},
		{history.Call{KEKID: "k"}, "l", false},
		{cut, long, true},
		{cut, long[:1024], false},
		{cut, long[1:], false},
		{cut, "l" + long[1:], false},
	} {
		if got := answeredKEK(&test.call, test.target); got != test.want {
			t.Errorf("%d bytes, and a target of %d: %v", len(test.call.KEKID), len(test.target), got)
		}
	}
	if got := sized(long, len(long)); !strings.HasSuffix(got, " of 2000 bytes") {
		t.Errorf("it is shown as %s", got)
	}
}
