package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// block is a fenced block of output: the lines from and to, without the fences. Without a marker it is a fenced block or inline code with
// commands to run, whose output nothing compares.
type block struct {
	kind     string
	exit     int // of the last command
	from, to int
	problem  string
	commands []string // that the lines do not show
}

var (
	marker = regexp.MustCompile(`^\s*<!-- output: (\w+)(?:, exit (\d))?(?:: (.*))? -->$`)
	fence  = regexp.MustCompile("^\\s*```(\\w*)")
	inline = regexp.MustCompile("`([^`]+)`")
)

// blocks are the fenced blocks that a marker stands before, and the commands without one that are to be run.
func blocks(lines []string, rules rules) (all []block) {
	add := func(line int, commands []string) {
		for _, command := range commands {
			all = append(all, block{kind: rules.kind(command), from: line, to: line, commands: []string{command}})
		}
	}
	lines = append(slices.Clone(lines), "")
	for i, paragraph := 0, 0; i < len(lines); i++ {
		m, opened := marker.FindStringSubmatch(lines[i]), fence.FindStringSubmatch(lines[i])
		if m == nil && opened == nil && lines[i] != "" {
			continue
		}
		for _, code := range inline.FindAllStringSubmatch(strings.Join(lines[paragraph:i], "\n"), -1) {
			if text := strings.ReplaceAll(strings.Join(strings.Fields(code[1]), " "), `\|`, "|"); !name.MatchString(text) {
				add(paragraph, wholeCommands([]string{text}))
			}
		}
		b := block{from: i + 1}
		if m != nil {
			b = block{kind: m[1], from: i + 2, commands: slices.DeleteFunc(m[3:], func(command string) bool { return command == "" })}
			b.exit, _ = strconv.Atoi(m[2])
			opened = fence.FindStringSubmatch(lines[i+1])
		}
		length := -1
		if opened != nil {
			length = slices.IndexFunc(lines[b.from:], fence.MatchString)
		}
		b.to = b.from + max(length, 0)
		switch {
		case m == nil && length >= 0:
			if opened[1] == "" || opened[1] == "sh" {
				add(b.from, wholeCommands(lines[b.from:b.to]))
			}
		case m != nil || opened != nil:
			if length < 0 {
				b.problem = "a marker without a fenced block below it, or a block without an end"
			} else if !slices.Contains([]string{"compared", "sim", "local"}, b.kind) {
				b.problem = "unknown kind of output " + b.kind
			}
			all = append(all, b)
		}
		if length >= 0 {
			i = b.to
		}
		paragraph = i + 1
	}
	return all
}

// part is a command as it is shown, and the output that is shown of it.
type part struct{ command, output []string }

// parts splits what is shown. A command goes on to the next line behind a backslash or in quotes.
func (b block) parts(shown []string) (all []part) {
	if len(b.commands) > 0 {
		return []part{{nil, shown}}
	}
	open := false
	for _, line := range shown {
		switch first := strings.HasPrefix(line, "$ "); {
		case first || open:
			if first && !open {
				all = append(all, part{})
			}
			last := &all[len(all)-1]
			last.command = append(last.command, line)
			text := strings.Join(last.command, "\n")
			open = strings.HasSuffix(line, `\`) || strings.Count(text, "'")%2 == 1
		case len(all) > 0:
			last := &all[len(all)-1]
			last.output = append(last.output, line)
		}
	}
	return all
}

// again is a block with the output of a new run.
func (b block) again(shown []string, run func([]string) ([]result, error)) (lines []string, err error) {
	parts, commands := b.parts(shown), b.commands
	if len(commands) == 0 {
		for _, p := range parts {
			commands = append(commands, strings.TrimPrefix(strings.Join(p.command, "\n"), "$ "))
		}
	}
	results, err := run(commands)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		if want := map[bool]int{true: b.exit}[i == len(results)-1]; r.code != want {
			return nil, fmt.Errorf("%s: exit code %d, expected %d:\n%s", commands[i], r.code, want, r.output)
		}
	}
	for i, p := range parts {
		output, err := renew(p.output, strings.Split(strings.TrimRight(results[i].output, "\n"), "\n"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", commands[i], err)
		}
		lines = append(append(lines, p.command...), output...)
	}
	return lines, nil
}

const anything = "…"

// renew is what is shown of an output, with the lines of a new one, and "…" where something is left out.
func renew(shown, got []string) (lines []string, err error) {
	if strings.TrimSpace(strings.Join(shown, "")) == "" {
		return shown, nil
	}
	next, gap := 0, false
	for i, line := range shown {
		switch strings.TrimSpace(line) {
		case anything:
			lines, gap = append(lines, line), true
			continue
		case "":
			if i == len(shown)-1 && !gap && next < len(got) { // between two commands
				lines, gap = append(lines, anything), true
			}
			if lines = append(lines, line); !gap && next < len(got) && got[next] == "" {
				next++
			}
			continue
		}
		pattern := patternOf(line)
		n := slices.IndexFunc(got[next:], pattern.MatchString)
		if n < 0 {
			return nil, fmt.Errorf("nothing in the output is like the line %q", line)
		}
		if !gap && n > 0 {
			lines = append(lines, anything)
		}
		lines = append(lines, elided(pattern, got[next+n]))
		next, gap = next+n+1, false
	}
	if !gap && next < len(got) {
		lines = append(lines, anything)
	}
	return lines, nil
}

// varying is what can differ between two runs: instants, identifiers, durations and numbers.
var varying = regexp.MustCompile(`…|\s+|[\d-]*T?\d\d:\d\d:\d\d[.\d]*Z?|\b[0-9a-f]{8}[0-9a-f-]*\b|\b(\d+(\.\d+)?(ns|µs|ms|s|m[\d.]+s)|\d+(\.\d+)?)\b`)

// patternOf matches lines that are like this one.
func patternOf(line string) *regexp.Regexp {
	var b strings.Builder
	end := 0
	for _, at := range varying.FindAllStringIndex(line, -1) {
		b.WriteString(regexp.QuoteMeta(line[end:at[0]]))
		switch text := line[at[0]:at[1]]; {
		case text == anything:
			b.WriteString(`(.*)`)
		case strings.TrimSpace(text) == "":
			b.WriteString(`\s*`)
		case strings.Contains(text, ":"):
			b.WriteString(`[-\dT:.]+Z?`)
		case len(text) >= 8:
			b.WriteString(`[0-9a-f-]+`)
		case at[0] > 0 && strings.ContainsAny(line[at[0]-1:at[0]], "-/[") && strings.Trim(text, "0123456789") == "":
			b.WriteString(text) // of a name: cp-2/1, steps[0]
		default:
			b.WriteString(`\d[\d.]*(?:ns|µs|ms|s|m[\d.]+s)?`)
		}
		end = at[1]
	}
	return regexp.MustCompile("^" + b.String() + regexp.QuoteMeta(line[end:]) + "$")
}

// elided is a line in which what the pattern leaves open is left out.
func elided(pattern *regexp.Regexp, line string) string {
	at := pattern.FindStringSubmatchIndex(line)
	for group := len(at)/2 - 1; group > 0; group-- {
		line = line[:at[2*group]] + anything + line[at[2*group+1]:]
	}
	return line
}
