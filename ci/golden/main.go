// Command golden computes verdicts that a refactoring must not change, and compares them with those on record: of simulated seeds, of the
// catalogue and the mutants on sim, and of histories that were saved.
//
//	make golden            compare, of the seeds so many as SEEDS says (20)
//	make golden UPDATE=1   write them again; the commit says why
//
// A line has the status of one history, scenario, mutant or seed, and the ids of what failed in it; of a mutant, of what must. Wording, counts
// and hashes of histories are not in it: a change of these needs no update. Seeds that passed stand together, five on a line.
package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/bubble"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/swarm"
	"github.com/kmsharness/kmsharness/scenarios"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
	"github.com/kmsharness/kmsharness/scenarios/mutants/trial"
)

func main() { bubble.Main(compare) }

func compare() {
	program := flag.String("kmsharness", "bin/kmsharness", "the program whose simulations are compared")
	folder := flag.String("folder", "ci/golden", "has golden.txt, and in histories/ what was saved")
	update := flag.Bool("update", false, "write golden.txt again")
	seeds := flag.Int("seeds", allSeeds, "so many of each kind; those on record beyond them are left out, as is the typed form where it makes no difference")
	share := flag.String("share", "", "print the results of a share of the mutants, N/OF/FORM, which this program asks itself")
	flag.Parse()
	if *share != "" {
		bubble.Main(func() { os.Exit(printShare(context.Background(), *share)) })
	}
	if *update && *seeds != allSeeds || *seeds < 0 || *seeds > allSeeds || *seeds%chunk != 0 {
		fmt.Fprintf(os.Stderr, "golden: --seeds %d: expected a multiple of %d, %d at most, and all of them with --update\n", *seeds, chunk, allSeeds)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, *program, *folder, *seeds, *update); err != nil {
		fmt.Fprintln(os.Stderr, "golden:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(ctx context.Context, program, folder string, seeds int, update bool) error {
	parts := []func() ([]string, error){
		func() ([]string, error) { return judged(filepath.Join(folder, "histories")) },
		func() ([]string, error) { return catalogue(ctx, program, seeds < allSeeds) },
		func() ([]string, error) { return tried(ctx, seeds < allSeeds) },
	}
	for _, flags := range [][]string{nil, {"--operator"}, {"--publish", "stream"}, {"--hours", "1"}} {
		parts = append(parts, func() ([]string, error) { return simulated(ctx, program, seeds, flags...) })
	}
	var got []string
	for _, part := range parts {
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
	want := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"), func(line string) bool {
		return seedOf(line) > seeds || seeds < allSeeds && leftOut(line, got)
	})
	if differences := Differences(want, got); len(differences) > 0 {
		fmt.Println(strings.Join(differences, "\n"))
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

// allSeeds of each kind are on record; chunk is how many have a line.
const (
	allSeeds = 20
	chunk    = 5
)

// seedOf is the last seed of a line about seeds, and 0 of any other.
func seedOf(line string) (seed int) {
	var from int
	if n, _ := fmt.Sscanf(line, "--seeds %d-%d", &from, &seed); n < 2 {
		seed = 0
		_, _ = fmt.Sscanf(line, "seed %d", &seed)
	}
	return seed
}

func simulated(ctx context.Context, program string, seeds int, flags ...string) (lines []string, err error) {
	out, err := os.MkdirTemp("", "golden-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(out)
	for from := 1; from <= seeds; from += chunk {
		kind := append([]string{"--seeds", fmt.Sprintf("%d-%d", from, min(from+chunk-1, seeds))}, flags...)
		text, err := output(ctx, program, append([]string{"simulate", "-o", "json", "--no-shrink", "--out", out}, kind...)...)
		if err != nil {
			return nil, err
		}
		var s swarm.Summary
		if err := json.Unmarshal(text, &s); err != nil {
			return nil, fmt.Errorf("%s: read the summary: %w", strings.Join(kind, " "), err)
		}
		outcome := "all passed"
		if len(s.Failed) > 0 {
			outcome = "not all passed"
		}
		lines = append(lines, strings.Join(kind, " ")+": "+outcome)
		for _, f := range s.Failed {
			lines = append(lines, verdict(strings.Join(append([]string{"seed", fmt.Sprint(f.Seed)}, flags...), " "), string(f.Status), f.Violated))
		}
	}
	return lines, nil
}

func verdict(of, status string, failed []string) string {
	failed = slices.Sorted(slices.Values(failed))
	return strings.TrimSpace(of + ": " + status + " " + strings.Join(slices.Compact(failed), " "))
}

func failures(r result.Result) (ids []string) {
	for _, f := range r.Failures {
		ids = append(ids, f.ID)
	}
	return ids
}

// whereItMatters selects every scenario, and its typed form where that can make a difference.
const whereItMatters = "form || !/@healthreports/"

// leftOut reports whether a line is about the typed form of a scenario or mutant that was not run in it.
func leftOut(line string, got []string) bool {
	name, _, _ := strings.Cut(line, ":")
	typed := strings.HasPrefix(name, "scenario ") && strings.HasSuffix(name, "@"+scenario.ContractHealthReports) ||
		strings.HasPrefix(name, "mutant ") && strings.HasSuffix(name, "("+scenario.ContractHealthReports+")")
	return typed && !slices.ContainsFunc(got, func(l string) bool { return strings.HasPrefix(l, name+":") })
}

// catalogue runs every scenario on sim, in both wire forms; a part of it in the typed one only where that can make a difference.
func catalogue(ctx context.Context, program string, part bool) (lines []string, err error) {
	labels := choose.AllLabels
	if part {
		labels = whereItMatters
	}
	out, err := os.MkdirTemp("", "golden-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(out)
	if _, err := output(ctx, program, "e2e", "--backend", "sim", "--contract", "both", "--labels", labels, "--out", out); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(out, "*", "result.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		r, err := result.ReadResult(file)
		if err != nil {
			return nil, err
		}
		lines = append(lines, verdict("scenario "+filepath.Base(filepath.Dir(file)), string(r.Status), failures(r)))
	}
	if len(lines) == 0 {
		return nil, errors.New("the catalogue left no results")
	}
	return lines, nil
}

// tried tries every mutant that needs no process, in both wire forms; a part of it in one. What may fail beside what must is a matter of timing, and
// left out.
func tried(ctx context.Context, part bool) (lines []string, err error) {
	trying, ctx := errgroup.WithContext(ctx)
	trying.SetLimit(runtime.NumCPU())
	var mu sync.Mutex
	for n, form := range scenario.Contracts() {
		fmt.Fprintf(os.Stderr, "golden: mutants (%s)\n", form)
		for i := range runtime.NumCPU() { // a process has one bubble at a time
			if part && n > 0 {
				break
			}
			trying.Go(func() error {
				text, err := itself(ctx, "--share", fmt.Sprintf("%d/%d/%s", i, runtime.NumCPU(), form))
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, text...)
				return err
			})
		}
	}
	err = trying.Wait()
	slices.Sort(lines)
	return lines, err
}

// isTriedIn reports whether a mutant is tried in the form of a number: one that can be made in one form only is tried once.
func isTriedIn(m mutants.Mutant, form int) bool {
	return form == 0 || m.Contract == ""
}

// try gives the result of one mutant.
func try(ctx context.Context, catalogue []*scenario.Scenario, m mutants.Mutant, form string) (string, error) {
	form = cmp.Or(m.Contract, form)
	all, err := scenario.InForms(catalogue, form)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return "", err
	}
	out, err := os.MkdirTemp("", "golden-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(out)
	r := trial.Run(ctx, m, trial.Options{Scenarios: all, Out: out}).Result
	failed := slices.DeleteFunc(failures(r), func(id string) bool { return !slices.Contains(m.Caught, id) })
	return verdict("mutant "+m.Name+" ("+form+")", string(r.Status), failed), nil
}

// itself runs this program, and gives the lines that it prints.
func itself(ctx context.Context, args ...string) ([]string, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := output(ctx, program, args...)
	return strings.Split(strings.TrimSpace(string(text)), "\n"), err
}

// printShare prints the results of every so many-th mutant.
func printShare(ctx context.Context, share string) int {
	var n, of int
	var form string
	if _, err := fmt.Sscanf(share, "%d/%d/%s", &n, &of, &form); err != nil || of < 1 {
		fmt.Fprintf(os.Stderr, "golden: --share %s: expected N/OF/FORM\n", share)
		return 2
	}
	catalogue, err := scenarios.Load()
	if err != nil {
		fmt.Fprintln(os.Stderr, "golden:", err)
		return 2
	}
	all := slices.DeleteFunc(mutants.All(), func(m mutants.Mutant) bool {
		return m.Backend() == "local" || !isTriedIn(m, slices.Index(scenario.Contracts(), form))
	})
	for i, m := range all {
		if i%of != n {
			continue
		}
		line, err := try(ctx, catalogue, m, form)
		if err != nil {
			fmt.Fprintln(os.Stderr, "golden:", err)
			return 2
		}
		fmt.Println(line)
	}
	return 0
}

// judged gives the verdicts of saved histories.
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
		var failed []string
		v := check.Run(events)
		for _, f := range v.Failing {
			failed = append(failed, f.ID)
		}
		lines = append(lines, verdict("history "+strings.TrimSuffix(filepath.Base(file), ".jsonl.gz"), string(v.Outcome), failed))
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
