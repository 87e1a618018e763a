package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/internal/program"
)

func invoke(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// Shards and their merge say what one run says, and one seed says what it is about.
func TestSimulateShardsAndMerge(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	code, whole, errs := invoke(t, "simulate", "--seeds", "1-4", "--out", at("whole"), "--jobs", "2")
	if code != program.ExitPassed || !strings.Contains(whole, "4 of 4 seeds passed") {
		t.Fatalf("%d\n%s%s", code, whole, errs)
	}
	for _, i := range []string{"0", "1"} {
		code, out, errs := invoke(t, "simulate", "--seeds", "1-4", "--out", at(i), "--shard", i+"/2", "--jobs", "1", "-o", "json")
		if code != program.ExitPassed || errs != "" {
			t.Fatalf("%d\n%s%s", code, out, errs)
		}
		if err := os.WriteFile(at(i+".json"), []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	code, merged, _ := invoke(t, "simulate", "merge", at("0.json"), at("1"))
	if hash := whole[strings.LastIndex(whole, "histories "):]; code != program.ExitPassed || !strings.HasSuffix(merged, hash) {
		t.Errorf("%d\n%s\nexpected the hash of\n%s", code, merged, whole)
	}
	for what, args := range map[string][]string{"twice": {at("0"), at("0.json")}, "seeds 3-4": {at("0")}, "read the summary": {at("0/.kmsharness-out")}} {
		code, out, errs := invoke(t, append([]string{"simulate", "merge"}, args...)...)
		if code != program.ExitCouldNotRun || what != "twice" && !strings.Contains(out+errs, what) {
			t.Errorf("%s: %d %s%s", what, code, out, errs)
		}
	}
	code, one, _ := invoke(t, "simulate", "--seed", "2", "--out", at("one"))
	if _, err := os.Stat(at("one/swarm-2/history.jsonl")); err != nil || code != program.ExitPassed || !strings.Contains(one, "history: ") || !strings.Contains(one, "ROLLUP-TRUTH") {
		t.Errorf("%d %v\n%s", code, err, one)
	}
}

func TestSimulateMistakes(t *testing.T) {
	for _, args := range [][]string{
		{"--seeds", "4-1"}, {"--seeds", "x"}, {"--jobs", "0"}, {"--hours", "-1"}, {"--hours", "99999"},
		{"--shard", "2/2"}, {"--shard", "x"}, {"--seeds", "1-2", "--shard", "2/3"}, {"--seed", "1", "--seeds", "1"}, {"--backend", "local"},
	} {
		out := filepath.Join(t.TempDir(), "out")
		code, _, errs := invoke(t, append([]string{"simulate", "--out", out}, args...)...)
		if _, err := os.Stat(out); code != program.ExitCouldNotRun || strings.Count(errs, "\n") != 1 || err == nil {
			t.Errorf("%v: %d %q, output folder %v; expected one line, and 2, before the folder is touched", args, code, errs, err)
		}
	}
}
