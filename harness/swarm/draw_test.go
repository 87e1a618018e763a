package swarm_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/harness/swarm"
)

// What is drawn is a valid file, and the same for the same seed.
func TestDraw(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range int64(500) {
		text := swarm.Draw(seed)
		if !bytes.Equal(text, swarm.Draw(seed)) {
			t.Fatalf("seed %d gives two files", seed)
		}
		if _, err := parser.Parse(swarm.Name(seed)+".yaml", text); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
	}
}

// Only what sim can pause is paused, and some of it is.
func TestDrawPauses(t *testing.T) {
	paused := map[string]int{}
	for seed := range int64(500) {
		for line := range strings.Lines(string(swarm.Draw(seed))) {
			if _, what, ok := strings.Cut(line, "pause: {role: "); ok {
				role, _, _ := strings.Cut(strings.TrimRight(what, "}\n"), ",")
				paused[role]++
			}
		}
	}
	for role := range paused {
		if !virtual.Pausable(role) {
			t.Errorf("%s is paused %d times, which sim cannot do", role, paused[role])
		}
	}
	if paused[history.RoleEtcd] == 0 || paused[history.RolePlugin] == 0 {
		t.Errorf("%v, expected etcd and plugins to be paused", paused)
	}
}
