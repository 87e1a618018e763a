package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	program = regexp.MustCompile(`^(?:[A-Z_]+=\S+ )*(?:bin/[a-z.-]+|kmsharness|fake-kms-plugin|kms-health-[a-z]+|encryption-operator|make|go (?:test|run|build|generate)|\.ci/run|ci/\S+\.sh)(?: |$)`)
	// name is no command, but the name of one.
	name = regexp.MustCompile(`^(?:kmsharness(?: [a-z0-9]+| (?:conform|scenario|simulate|plugin(?: kms)?) [a-z]+)?|(?:fake-kms-plugin|kms-health-[a-z]+|encryption-operator)(?: serve)?|make|go [a-z]+)$`)
	// template has a place for something of the reader's.
	template = regexp.MustCompile(`…|\w\|\w|\[|[ /=][A-Z][A-Z_-]*(?:[ ./|]|$)|[ '":/=]my-`)
)

// wholeCommands are the project's commands among lines of code that can be run as they stand there.
func wholeCommands(lines []string) (all []string) {
	var marked []string
	for _, line := range lines {
		if text := strings.TrimPrefix(strings.TrimSpace(line), "$ "); program.MatchString(text) {
			line = "$ " + text
		} else {
			line = strings.TrimPrefix(line, "$ ")
		}
		marked = append(marked, line)
	}
	for _, p := range (block{}).parts(marked) {
		command, _, _ := strings.Cut(strings.TrimPrefix(strings.Join(p.command, "\n"), "$ "), "  #")
		if command = strings.TrimSpace(command); !template.MatchString(command) {
			all = append(all, command)
		}
	}
	return all
}

// rules say where a command without a marker runs. A make target with a stage of its own and a test are run by the gate or the night.
type rules struct {
	stages     string
	exceptions []string // "COMMAND # REASON"; COMMAND is how a command begins
}

func readRules(root string) (r rules, err error) {
	var texts [3]string
	for i, file := range []string{"ci/readme/exceptions.txt", ".ci/run", "ci/gate/nightly.sh"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return r, err
		}
		texts[i] = string(text)
	}
	return rules{texts[1] + texts[2], strings.Split(strings.TrimSpace(texts[0]), "\n")}, nil
}

// excepts reports whether an exception is about a command.
func excepts(exception, command string) bool {
	begin, reason, _ := strings.Cut(exception, " # ")
	return reason != "" && strings.HasPrefix(command+" ", strings.TrimSpace(begin)+" ")
}

// kind is where a command runs: "test" are those that a test runs, and "" those that are run elsewhere, or by nobody for a reason.
func (r rules) kind(command string) string {
	words := strings.Fields(regexp.MustCompile(`^(?:[A-Z_]+=\S+ )+|(=)'[^']*'`).ReplaceAllString(command, "$1"))
	noStage := func(target string) bool {
		return !strings.Contains(target, "=") && !regexp.MustCompile(`(?m)^[^#\n]*\bstage \S+ \S+ make `+regexp.QuoteMeta(target)+`( |$)`).MatchString(r.stages)
	}
	switch {
	case slices.ContainsFunc(r.exceptions, func(e string) bool { return excepts(e, command) }),
		words[0] == "make" && !slices.ContainsFunc(words[1:], noStage),
		words[0] == "go" && words[1] == "test":
		return ""
	case !strings.HasSuffix(words[0], "kmsharness") && !strings.HasSuffix(words[0], "kms-conformance"), !strings.Contains(command, "--backend sim") && regexp.MustCompile(`^\S+ (run|e2e|up|down|simulate --seeds|conform (reporter|aggregator|operator)) `).MatchString(command+" "):
		return "local"
	}
	return "test"
}
