// Command readme writes the output of commands that Markdown files show again, from runs of these commands.
//
// A comment before a fenced block says that it is output:
//
//	<!-- output: compared -->                   a test compares it, so its command is fast and deterministic
//	<!-- output: sim -->                        varies; a test runs it, with kmsharness, kms-conformance and fake-kms-plugin
//	<!-- output: local -->                      needs etcd, kube-apiserver and the programs in bin, or a minute: only this program runs it
//	<!-- output: local, exit 1 -->              the last command ends with 1, the others with 0
//	<!-- output: local: cat FILE -->            the block shows no command; this is it
//
// Commands without a marker, also in inline code, are run as well, and must end with 0: see rules.
//
// The lines of a block after "$ " are commands, the others their output. A line "…" stands for any lines, "…" in a line for any text; what
// else is shown stays, with the numbers, times and identifiers of the new run. It is an error if a line has no counterpart in the new output.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	kinds := flag.String("kinds", "compared,sim,local", "which blocks to write again")
	check := flag.Bool("check", false, "write nothing")
	flag.Parse()
	rules, err := readRules(".")
	for _, file := range flag.Args() {
		if err == nil {
			err = rewrite(context.Background(), file, strings.Split(*kinds, ","), rules, *check)
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "readme: %v\n", err)
		os.Exit(1)
	}
}

// rewrite runs the commands of a file's blocks, in their order, and writes the file if there was no error.
func rewrite(ctx context.Context, file string, kinds []string, rules rules, check bool) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	next, err := update(string(text), kinds, rules, func(commands []string) ([]result, error) {
		fmt.Println("$", strings.Join(commands, "\n$ "))
		return run(ctx, ".", commands)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if check {
		return nil
	}
	return os.WriteFile(file, []byte(next), 0o644)
}

type result struct {
	output string
	code   int
}

var ended = regexp.MustCompile(`\x01(\d+)\n`)

// run runs commands in one shell in a folder, whose programs come first, and returns what became of each. What they leave running is ended.
func run(ctx context.Context, dir string, commands []string) (results []result, err error) {
	script := "exec 2>&1\nPATH=$PWD/bin:$PATH\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\n"
	for _, command := range commands {
		if inBackground, is := strings.CutSuffix(command, "&"); is { // goes on when it has printed its first line
			command = "log=$(mktemp)\n" + inBackground + ` >"$log" 2>&1 &` + "\n" + `timeout 10 head -n 1 <(tail -n +1 -f --pid=$! "$log"); rm "$log"`
		}
		script += command + "\nprintf '\\001%d\\n' $?\n"
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = dir
	out, err := cmd.Output()
	from := 0
	for _, at := range ended.FindAllSubmatchIndex(out, -1) {
		code, _ := strconv.Atoi(string(out[at[2]:at[3]]))
		results = append(results, result{string(out[from:at[0]]), code})
		from = at[1]
	}
	if len(results) != len(commands) {
		return nil, fmt.Errorf("%s: ended early: %w\n%s", commands[len(results)], err, out[from:])
	}
	return results, nil
}

// update is a text with the blocks of these kinds written again.
func update(text string, kinds []string, rules rules, run func(commands []string) ([]result, error)) (string, error) {
	lines := strings.Split(text, "\n")
	moved := 0
	for _, b := range blocks(lines, rules) {
		if b.problem != "" {
			return "", fmt.Errorf("line %d: %s", b.from, b.problem)
		}
		if !slices.Contains(kinds, b.kind) {
			continue
		}
		from, to := b.from+moved, b.to+moved
		next, err := b.again(lines[from:to], run)
		if err != nil {
			return "", fmt.Errorf("line %d: %w", b.from, err)
		}
		lines = slices.Replace(lines, from, to, next...)
		moved += len(next) - (b.to - b.from)
	}
	return strings.Join(lines, "\n"), nil
}
