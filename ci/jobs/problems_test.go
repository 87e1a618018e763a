package jobs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// makefile is what a command line may name, and the stages that job files must run: those of the night, and those of the gate with their commands.
type makefile struct {
	targets, variables map[string]bool
	night              []string
	gate               map[string][]string
}

var (
	targetLine   = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
	variableLine = regexp.MustCompile(`(?m)^([A-Z]+) \?=`)
	stageLine    = regexp.MustCompile(`(?m)^[^#\n]*\bstage ([a-z-]+) \S+ (.*)$`)
	action       = regexp.MustCompile(`@[0-9a-f]{40}$`)
	// shellWord is a word with its quotes; a quoted blank does not end it.
	shellWord = regexp.MustCompile(`(?:[^\s"']|"[^"]*"|'[^']*')+`)
)

// launcher may stand before make in a container: it starts an engine.
const launcher = "runner.sh"

func parseMakefile(text string) makefile {
	names := func(line *regexp.Regexp) map[string]bool {
		out := map[string]bool{}
		for _, m := range line.FindAllStringSubmatch(text, -1) {
			out[m[1]] = true
		}
		return out
	}
	return makefile{targets: names(targetLine), variables: names(variableLine)}
}

// provided are stages that judge nothing, which the others bring with them.
var provided = []string{"build", "browser", "binaries", "engine", "node-image"}

// readStages adds the stages of the gate and of the night.
func (mk *makefile) readStages(gate, night string) {
	for _, m := range stageLine.FindAllStringSubmatch(night, -1) {
		if !slices.Contains(provided, m[1]) {
			mk.night = append(mk.night, m[1])
		}
	}
	mk.gate = map[string][]string{}
	for _, m := range stageLine.FindAllStringSubmatch(gate, -1) {
		words := shellWord.FindAllString(strings.TrimSuffix(m[2], " || {"), -1)
		mk.gate[m[1]] = slices.DeleteFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "OUT=") || strings.HasPrefix(w, "TIME=") })
	}
}

// missing are the stages that no job of a file runs.
func (w *walk) missing() {
	for _, name := range slices.Sorted(maps.Keys(w.mk.gate)) {
		if !slices.ContainsFunc(w.calls, func(call []string) bool { return containsAll(call, w.mk.gate[name]) }) {
			w.problem("no job runs the gate's stage %s: make %s", name, strings.Join(w.mk.gate[name], " "))
		}
	}
	for _, name := range w.mk.night {
		if len(w.night) > 0 && !slices.Contains(w.night, name) {
			w.problem("no job runs the night's stage %s", name)
		}
	}
	for _, name := range w.night {
		if !slices.Contains(append(w.mk.night, provided...), name) {
			w.problem("%s is not a stage of the night", name)
		}
	}
}

// containsAll compares words without their quotes.
func containsAll(call, words []string) bool {
	plain := func(s string) string { return strings.NewReplacer("'", "", `"`, "").Replace(s) }
	for _, word := range words {
		if !slices.ContainsFunc(call, func(c string) bool { return plain(c) == plain(word) }) {
			return false
		}
	}
	return true
}

// problems are what is wrong with a job file, one line each. Its commands are found by the keys that CI systems give them:
// run of a step, command and args of a container.
func problems(file []byte, mk makefile) []string {
	var root any
	if err := yaml.UnmarshalStrict(file, &root); err != nil {
		return []string{fmt.Sprintf("not a job file: %v", err)}
	}
	w := walk{mk: mk}
	w.node(root)
	if w.commands == 0 {
		w.problem("it calls no make target")
	}
	w.missing()
	return w.found
}

type walk struct {
	mk       makefile
	commands int
	calls    [][]string // of make, with their words
	night    []string   // stages of the night that jobs name; all of them, if a job names none
	found    []string
}

func (w *walk) problem(format string, args ...any) {
	w.found = append(w.found, fmt.Sprintf(format, args...))
}

func (w *walk) node(n any) {
	switch n := n.(type) {
	case []any:
		for _, item := range n {
			w.node(item)
		}
	case map[string]any:
		w.mapping(n)
		for _, key := range slices.Sorted(maps.Keys(n)) {
			w.node(n[key])
		}
	}
}

func (w *walk) mapping(m map[string]any) {
	if run, ok := m["run"].(string); ok {
		if strings.Contains(run, "${{") {
			w.problem("%s: an expression in a command is code: pass it in env", strings.TrimSpace(run))
		}
		for line := range strings.Lines(run) {
			w.command(shellWord.FindAllString(line, -1))
		}
	}
	if words := append(texts(m["command"]), texts(m["args"])...); len(words) > 0 {
		w.command(words)
	}
	if _, ok := m["continue-on-error"]; ok {
		w.problem("continue-on-error: a red step would look green")
	}
	for _, list := range texts(m["stages"]) {
		w.night = append(w.night, strings.Fields(list)...)
	}
	uses, _ := m["uses"].(string)
	if uses != "" && !action.MatchString(uses) {
		w.problem("%s: expected a commit, which nobody can move", uses)
	}
	if strings.HasPrefix(uses, "actions/upload-artifact@") && m["if"] != "always()" {
		w.problem("%s without if: always(): a red run would leave no evidence", uses)
	}
}

// command is judged as make would read it; make itself takes an unknown variable without a word, and runs something else.
func (w *walk) command(words []string) {
	w.commands++
	line := strings.Join(words, " ")
	if len(words) > 0 && words[0] == launcher {
		words = words[1:]
	}
	if len(words) == 0 || words[0] != "make" {
		w.problem("it calls %s, expected make targets only", line)
		return
	}
	w.calls = append(w.calls, words[1:])
	targets := 0
	for _, word := range words[1:] {
		name, _, assigned := strings.Cut(word, "=")
		switch {
		case assigned && !w.mk.variables[name]:
			w.problem("%s: %s is not a variable of the Makefile (VARIABLE ?= …)", line, name)
		case !assigned && !w.mk.targets[word]:
			w.problem("%s: %q is not a target of the Makefile, see make help", line, word)
		case !assigned:
			targets++
		}
	}
	if targets == 0 {
		w.problem("%s: names no target, make would print its help and pass", line)
	}
}

func texts(list any) []string {
	var out []string
	items, _ := list.([]any)
	for _, item := range items {
		out = append(out, fmt.Sprint(item))
	}
	return out
}
