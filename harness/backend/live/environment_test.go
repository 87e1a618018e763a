package live

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

func TestSocketsAreNotInMemory(t *testing.T) {
	for cel, want := range map[string]bool{
		`expected.all(n, socket[n]["1"].uid == 0)`:                  true,
		`socket.all(n, true)`:                                       true,
		`"cp-1" in socket`:                                          true,
		`report["cp-1"]["1"].detail.contains("connect to socket:")`: false,
	} {
		s := &scenario.Scenario{Steps: []scenario.Step{{Expect: &scenario.Expectation{Mode: scenario.ModeWithin, CEL: cel}}}}
		lacks := strings.Join(UnsupportedVerbs(s, true), " ")
		if got := strings.Contains(lacks, "socket: "); got != want {
			t.Errorf("%s: %s", cel, lacks)
		}
		if lacks := UnsupportedVerbs(s, false); len(lacks) > 0 {
			t.Errorf("%s on a real control plane: %v", cel, lacks)
		}
	}
}
