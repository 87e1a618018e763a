package swarm_test

import (
	"bytes"
	"strings"
	"testing"

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

// What cannot be paused is killed; nothing else of a seed changes.
func TestDrawWithoutPauses(t *testing.T) {
	none, etcd := 0, 0
	for seed := range int64(500) {
		all := string(swarm.Draw(seed))
		some := string(swarm.Plan{Pausable: func(role string) bool { return role == "etcd" }}.Draw(seed))
		lines := strings.Split(some, "\n")
		for i, was := range strings.Split(all, "\n") {
			now := lines[i]
			switch {
			case strings.Contains(now, "pause: {role: etcd"):
				etcd++
			case strings.Contains(now, "pause: {"):
				t.Fatalf("seed %d has %s", seed, now)
			}
			if was == now {
				continue
			}
			none++
			if kills := strings.NewReplacer("pause:", "kill:", "resume:", "start:").Replace(was); now != kills {
				t.Errorf("seed %d: %s became %s, expected %s", seed, was, now, kills)
			}
		}
	}
	if none == 0 || etcd == 0 {
		t.Errorf("%d lines without and %d with a pause, expected some of both", none, etcd)
	}
}
