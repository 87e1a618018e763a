// Command readme writes the output of commands that Markdown files show again, from runs of these commands.
//
// A comment before a fenced block says that it is output:
//
//	<!-- output: compared -->                   a test compares it, so its command is fast and deterministic
//	<!-- output: sim -->                        needs nothing but the programs in bin
//	<!-- output: local -->                      needs etcd and kube-apiserver
//	<!-- output: local: cat FILE -->            the block shows no command; this is it
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
	"slices"
	"strings"
)

func main() {
	kinds := flag.String("kinds", "compared,sim,local", "which blocks to write again")
	flag.Parse()
	for _, file := range flag.Args() {
		if err := rewrite(context.Background(), file, strings.Split(*kinds, ",")); err != nil {
			fmt.Fprintf(os.Stderr, "readme: %v\n", err)
			os.Exit(1)
		}
	}
}

// rewrite runs the commands of a file's blocks, in their order, and writes the file if there was no error.
func rewrite(ctx context.Context, file string, kinds []string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	next, err := update(string(text), kinds, func(commands []string) ([]string, error) {
		fmt.Println("$", strings.Join(commands, "\n$ "))
		return run(ctx, commands)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(next), 0o644)
}

// separator ends the output of each command of a block.
const separator = "\x01\n"

// run runs commands in one shell and returns the output of each. Their exit codes are not looked at: a sample may show a failure.
func run(ctx context.Context, commands []string) ([]string, error) {
	var script strings.Builder
	for _, command := range commands {
		if inBackground, is := strings.CutSuffix(command, "&"); is { // goes on when it has printed its first line
			command = "log=$(mktemp)\n" + inBackground + ` >"$log" 2>&1 &` + "\n" + `timeout 10 head -n 1 <(tail -n +1 -f --pid=$! "$log"); rm "$log"`
		}
		script.WriteString(command + "\nprintf '\\001\\n'\n")
	}
	out, err := exec.CommandContext(ctx, "bash", "-c", "exec 2>&1\n"+script.String()).Output()
	outputs := strings.Split(string(out), separator)
	if len(outputs) != len(commands)+1 {
		return nil, fmt.Errorf("%s: ended early: %w", commands[0], err)
	}
	return outputs[:len(commands)], nil
}

// update is a text with the blocks of these kinds written again.
func update(text string, kinds []string, run func(commands []string) ([]string, error)) (string, error) {
	lines := strings.Split(text, "\n")
	moved := 0
	for _, b := range blocks(lines) {
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
