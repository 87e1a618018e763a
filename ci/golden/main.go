// Command golden computes results that a refactoring must not change, and compares them with those on record: the hashes of simulated
// histories, and the verdicts of histories that were saved.
//
//	make golden           compare
//	make golden UPDATE=1  write them again; the commit says why
//
// A line stands for 100 seeds, for one scenario in one wire form, or for one saved history, so that a difference has a place.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
)

func main() {
	program := flag.String("kmsharness", "bin/kmsharness", "the program whose simulations are compared")
	folder := flag.String("folder", "ci/golden", "has golden.txt, and in histories/ what was saved")
	update := flag.Bool("update", false, "write golden.txt again")
	seeds := flag.Int("seeds", 2000, "so many, with and without an operator")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, *program, *folder, *seeds, *update); err != nil {
		fmt.Fprintln(os.Stderr, "golden:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, program, folder string, seeds int, update bool) error {
	var got []string
	for _, part := range []func() ([]string, error){
		func() ([]string, error) { return judged(filepath.Join(folder, "histories")) },
		func() ([]string, error) { return simulated(ctx, program, seeds) },
		func() ([]string, error) { return simulated(ctx, program, seeds, "--operator") },
		func() ([]string, error) { return catalogue(ctx, program) },
	} {
		lines, err := part()
		if err != nil {
			return err
		}
		got = append(got, lines...)
	}
	file := filepath.Join(folder, "golden.txt")
	if update {
		return os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o644)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	differences := Differences(strings.Split(strings.TrimSpace(string(text)), "\n"), got)
	for _, d := range differences {
		fmt.Println(d)
	}
	if len(differences) > 0 {
		return fmt.Errorf("%d of %d results differ from %s: if they must, run make golden UPDATE=1 and give the reason in the commit", len(differences), len(got), file)
	}
	fmt.Printf("golden: %d results as on record\n", len(got))
	return nil
}

// Differences are the lines that are only in one of two lists of results.
func Differences(want, got []string) (out []string) {
	for _, line := range want {
		if !slices.Contains(got, line) {
			out = append(out, "- "+line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			out = append(out, "+ "+line)
		}
	}
	return out
}

// chunk is how many seeds have a line.
const chunk = 100

func simulated(ctx context.Context, program string, seeds int, flags ...string) (lines []string, err error) {
	for from := 1; from <= seeds; from += chunk {
		args := append([]string{"simulate", "--json", "--no-shrink", "--seeds", fmt.Sprintf("%d-%d", from, from+chunk-1)}, flags...)
		out, err := output(ctx, program, args...)
		if err != nil {
			return nil, err
		}
		var s struct {
			Passed int    `json:"passed"`
			Failed []any  `json:"failed"`
			Hash   string `json:"hash"`
		}
		if err := json.Unmarshal(out, &s); err != nil {
			return nil, fmt.Errorf("%s: read the summary: %w", strings.Join(args, " "), err)
		}
		lines = append(lines, fmt.Sprintf("%s: %d passed, %d failed, %s", strings.Join(args[3:], " "), s.Passed, len(s.Failed), s.Hash))
	}
	return lines, nil
}

// catalogue runs every scenario on sim, in both wire forms.
func catalogue(ctx context.Context, program string) (lines []string, err error) {
	out, err := os.MkdirTemp("", "golden-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(out)
	if _, err := output(ctx, program, "e2e", "--backend", "sim", "--contract", "both", "--labels", "all", "--out", out); err != nil {
		return nil, err
	}
	results, err := filepath.Glob(filepath.Join(out, "*", "result.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range results {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var result struct {
			Status string `json:"status"`
		}
		if err := json.Unmarshal(text, &result); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		line := "scenario " + filepath.Base(filepath.Dir(file)) + ": " + result.Status
		text, err = os.ReadFile(filepath.Join(filepath.Dir(file), "history.jsonl"))
		switch {
		case err == nil:
			line += fmt.Sprintf(", sha256:%x", sha256.Sum256(text))
		case !errors.Is(err, os.ErrNotExist): // a scenario that is not supported has none
			return nil, err
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return nil, errors.New("the catalogue left no results")
	}
	return lines, nil
}

// judged gives the verdicts of saved histories: the outcome, and how often which invariant was judged, violated, or violated only by what CPU
// starvation explains.
func judged(folder string) (lines []string, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl.gz"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		events, err := read(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		lines = append(lines, "history "+strings.TrimSuffix(filepath.Base(file), ".jsonl.gz")+": "+summary(check.Run(events)))
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s: no saved histories", folder)
	}
	return lines, nil
}

func read(file string) ([]history.Event, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return history.Read(z)
}

func summary(v check.Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, expectations %d/%d, problems %d", v.Outcome, v.Expectations.Judged-len(v.Expectations.Failed), v.Expectations.Judged, len(v.Problems))
	for _, i := range v.Invariants {
		fmt.Fprintf(&b, ", %s %d", i.ID, i.Judged)
		for _, n := range []struct {
			what  string
			count int
		}{{"violated", i.Count}, {"starved", i.StarvedCount}, {"house", len(i.House)}} {
			if n.count > 0 {
				fmt.Fprintf(&b, " %s %d", n.what, n.count)
			}
		}
	}
	return b.String()
}

// output runs the program; a run in which something failed has a result nevertheless.
func output(ctx context.Context, program string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, program, args...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	fmt.Fprintln(os.Stderr, "golden:", strings.Join(args, " "))
	out, err := c.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return out, nil
	}
	if err != nil {
		text, _ := io.ReadAll(io.LimitReader(&stderr, 4096))
		return nil, fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, text)
	}
	return out, nil
}
