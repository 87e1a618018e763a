package swarm_test

import (
	"bytes"
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
