package swarm_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/swarm"
)

func shard(t *testing.T, wanted, part swarm.Range) *swarm.Summary {
	t.Helper()
	s := swarm.NewSummary(wanted, map[string]string{"hours": "0"})
	err := swarm.Run(context.Background(), swarm.Options{From: part.From, To: part.To, Out: t.TempDir(), Done: s.Add,
		Backend: virtual.New(virtual.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Shards give together what one simulation gives, also through their files.
func TestMerge(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	wanted := swarm.Range{From: 3, To: 5}
	whole := shard(t, wanted, wanted)
	var shards []*swarm.Summary
	for i := range int64(3) {
		part, ok := wanted.Shard(i, 3)
		if !ok {
			t.Fatalf("shard %d is empty", i)
		}
		dir := t.TempDir()
		if err := shard(t, wanted, part).Save(dir); err != nil {
			t.Fatal(err)
		}
		s, err := swarm.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		shards = append(shards, s)
	}
	slices.Reverse(shards)
	merged, err := swarm.Merge(shards)
	if err != nil {
		t.Fatal(err)
	}
	if merged.Hash != whole.Hash || text(t, merged) != text(t, whole) || len(merged.Missing()) != 0 {
		t.Errorf("merged\n%s\nexpected\n%s\nmissing %v", text(t, merged), text(t, whole), merged.Missing())
	}
	part, err := swarm.Merge(shards[:2])
	if err != nil || len(part.Missing()) == 0 || !strings.Contains(text(t, part), "not simulated: seeds 3") {
		t.Errorf("%v; without the first shard:\n%s", err, text(t, part))
	}
	other := *shards[0]
	other.Settings = map[string]string{"hours": "1"}
	for what, of := range map[string][]*swarm.Summary{"nothing": nil, "one twice": {shards[0], shards[0]}, "other settings": {shards[1], &other},
		"other seeds": {shards[0], swarm.NewSummary(swarm.Range{From: 1, To: 2}, shards[0].Settings)}} {
		if _, err := swarm.Merge(of); err == nil {
			t.Errorf("%s was merged", what)
		}
	}
}

// text is what a summary prints, without what a machine decides.
func text(t *testing.T, s *swarm.Summary) string {
	t.Helper()
	c := *s
	c.WallSeconds = 1
	var b bytes.Buffer
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestShards(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 7, 10} {
		all := swarm.Range{From: 5, To: 14}
		next := all.From
		for i := range n {
			part, ok := all.Shard(i, n)
			if !ok || part.From != next || part.To-part.From > 10/n {
				t.Errorf("part %d of %d is %v", i, n, part)
			}
			next = part.To + 1
		}
		if next != 15 {
			t.Errorf("%d parts end before %d", n, next)
		}
	}
	if part, ok := (swarm.Range{From: 1, To: 2}).Shard(2, 3); ok {
		t.Errorf("a third part of two seeds is %v", part)
	}
}

func TestLoadRefuses(t *testing.T) {
	for what, content := range map[string]string{"no JSON": "x", "no schema": "{}", "another schema": `{"schema":"kmsharness.io/swarm/v9"}`,
		"seeds that it does not count": `{"schema":"kmsharness.io/swarm/v1","seeds":3,"done":[{"from":1,"to":2}]}`} {
		file := filepath.Join(t.TempDir(), "summary.json")
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := swarm.Load(file); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, expected an error that names the file", what, err)
		}
	}
}

// Every kind that a seed can draw is known, and in the words of the checker.
func TestKinds(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	kinds := swarm.Kinds()
	for _, want := range []string{"plugin hang", "aggregator crash", "link reporter-apiserver cut", "kms disable", "rotate", "etcd pause"} {
		if !slices.Contains(kinds, want) {
			t.Errorf("%q is missing: %q", want, kinds)
		}
	}
	s := shard(t, swarm.Range{From: 1, To: 12}, swarm.Range{From: 1, To: 12})
	for kind := range s.Faults {
		if !slices.Contains(kinds, kind) {
			t.Errorf("%q was in force, and is not known: %q", kind, kinds)
		}
	}
	if s.Pairs["plugin hostile-text"]["NOTHING-RAN"].Judged == 0 {
		t.Errorf("NOTHING-RAN was not judged while a plugin answered with a hostile text, or none did: %v", s.Faults)
	}
}
