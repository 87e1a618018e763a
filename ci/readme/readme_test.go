package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/kmsharness/kmsharness/conformance/command"
	plugincli "github.com/kmsharness/kmsharness/fakeplugin/cli"
	"github.com/kmsharness/kmsharness/harness/cli"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/bubble"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/scenarios"
)

// page is a file of the repository's root.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pages are the Markdown files for users, by their names in the repository's root.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"ci/README.md", "ci/nodeimage/README.md"}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/decisions/*.md"} {
		files, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			all = append(all, filepath.ToSlash(strings.TrimPrefix(file, filepath.Join("..", "..")+string(filepath.Separator))))
		}
	}
	return all
}

// programs are those that this test is when it is called by their names.
var programs = map[string]func(context.Context, []string, io.Writer, io.Writer) int{"kmsharness": cli.Main, "kms-conformance": command.Main, "fake-kms-plugin": fakePlugin}

func fakePlugin(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return plugincli.Main(ctx, host.Host{}, args, stdout, stderr)
}

func TestMain(m *testing.M) {
	if run := programs[filepath.Base(os.Args[0])]; run != nil {
		bubble.Main(func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
			stop()
			os.Exit(code)
		})
	}
	os.Exit(m.Run())
}

// userFolder is where the commands of pages run: the repository's files, its programs, and runs on sim.
func userFolder(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	results, err := run(t.Context(), dir, []string{"mkdir bin && for name in kmsharness kms-conformance fake-kms-plugin; do ln -s '" + self + "' bin/$name; done",
		"ln -s '" + root + "'/{scenarios,docs,fakeplugin,conformance} .",
		"kmsharness run --backend sim plugin-hangs uid-followed key-asked-for-in-vain && cp -r _artifacts local && cp -r _artifacts kind"})
	if err != nil || slices.ContainsFunc(results, func(r result) bool { return r.code != 0 }) {
		t.Fatal(results, err)
	}
	return dir
}

// inFolder runs commands in a folder, which also has what they write to /tmp.
func inFolder(t *testing.T, dir string) func([]string) ([]result, error) {
	return func(commands []string) ([]result, error) {
		var here []string
		for _, command := range commands {
			here = append(here, strings.ReplaceAll(command, "/tmp/", dir+"/"))
		}
		results, err := run(t.Context(), dir, here)
		for i := range results {
			results[i].output = strings.ReplaceAll(results[i].output, dir+"/", "/tmp/")
		}
		return results, err
	}
}

// history reports whether a page quotes commands of the past, or of the sources.
func history(page string) bool {
	return strings.HasPrefix(page, "docs/decisions/")
}

// readRulesHere are the rules of this repository.
func readRulesHere(t *testing.T) rules {
	t.Helper()
	r, err := readRules(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The commands of the pages end as they should, and what is shown of deterministic ones is what they print now.
func TestCommands(t *testing.T) {
	rules, prepared := readRulesHere(t), userFolder(t)
	for _, name := range pages(t) {
		if history(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			was, dir := page(t, name), t.TempDir()
			if results, err := run(t.Context(), dir, []string{"cp -r '" + prepared + "'/. ."}); err != nil || results[0].code != 0 {
				t.Fatal(results, err)
			}
			if _, err := update(was, []string{"sim", "test"}, rules, inFolder(t, dir)); err != nil {
				t.Fatal(err)
			}
			is, err := update(was, []string{"compared"}, rules, inFolder(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(is, "\n") {
				if i > strings.Count(was, "\n") || line != strings.Split(was, "\n")[i] {
					t.Fatalf("line %d: run make readme; expected\n%s", i+1, line)
				}
			}
		})
	}
}

// A command that fails, in a block or in a sentence, is found.
func TestBadCommands(t *testing.T) {
	rules, inHere := readRulesHere(t), inFolder(t, userFolder(t))
	for text, want := range map[string]string{
		"```\nbin/kmsharness conform plugin --focus 'RESTART' --plugin-command 'bin/fake-kms-plugin serve --listen {endpoint}'\n```": "exit code 1, expected 0",
		"See\n`bin/kmsharness faults no-such-fault`.":                                   "exit code 2",
		"<!-- output: sim -->\n```\n$ bin/kmsharness conform plugin --list x\n```":      "exit code 2",
		"<!-- output: sim, exit 1 -->\n```\n$ bin/kmsharness faults hang\n```":          "expected 1",
		"`bin/kmsharness faults hang`, `make lint test`, `bin/kmsharness faults FAULT`": "",
	} {
		_, err := update(text, []string{"sim", "test"}, rules, inHere)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for command, want := range map[string]string{"make e2e LABELS='a && b'": "", "make no-such-stage": "local", "make lint no-such-stage": "local",
		"bin/mutants --name x": "local", "kmsharness run x": "local", "kmsharness run --backend sim x": "test"} {
		if kind := rules.kind(command); kind != want {
			t.Errorf("%s: %q, want %q", command, kind, want)
		}
	}
}

// Every exception is about a command of a page, and what the pages select of go test or of the catalogue exists.
func TestExceptions(t *testing.T) {
	rules := readRulesHere(t)
	var commands []string
	for _, name := range pages(t) {
		if !history(name) {
			for _, b := range blocks(strings.Split(page(t, name), "\n"), rules) {
				commands = append(commands, b.commands...)
			}
		}
	}
	for _, e := range rules.exceptions {
		if !slices.ContainsFunc(commands, func(command string) bool { return excepts(e, command) }) {
			t.Errorf("ci/readme/exceptions.txt: %s: no page has this command, or it has no reason", e)
		}
	}
	catalogue, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, command := range commands {
		if m := labelsOf.FindStringSubmatch(command); m != nil {
			selects, err := types.ParseLabelFilter(strings.Trim(m[1], "'"))
			if err != nil || !slices.ContainsFunc(catalogue, func(s *scenario.Scenario) bool { return selects(scenarios.Labels(s)) }) {
				t.Errorf("%s: it selects no scenario, %v", command, err)
			}
		}
		if _, args, is := strings.Cut(command, "go test "); is {
			checked++
			if bad := missingTests(strings.Fields(args)); bad != "" {
				t.Errorf("%s: no such test in %s", command, bad)
			}
		}
	}
	if bad := missingTests([]string{"-run", "TestNoSuch", "./ci/readme"}); bad == "" || checked == 0 {
		t.Errorf("a test that does not exist is found in %d commands", checked)
	}
}

// missingTests is a package of go test without a test that -run selects.
func missingTests(args []string) string {
	selected := regexp.MustCompile("")
	if i := slices.Index(args, "-run"); i >= 0 {
		selected = regexp.MustCompile(strings.Trim(args[i+1], "'"))
	}
	for _, arg := range args {
		if !strings.HasPrefix(arg, "./") {
			continue
		}
		dir, below := strings.CutSuffix(filepath.Join("..", "..", arg), "/...")
		if below {
			dir = filepath.Join(dir, "*")
		}
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil || !slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && slices.ContainsFunc(testName.FindAllStringSubmatch(string(text), -1), func(m []string) bool { return selected.MatchString(m[1]) })
		}) {
			return arg
		}
	}
	return ""
}

var labelsOf = regexp.MustCompile(`LABELS=('[^']*'|\S+)`)

var testName = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w*)`)

// The catalogue's size stands in a block that takes too long to be compared.
func TestCatalogueCount(t *testing.T) {
	files, err := filepath.Glob("../../scenarios/catalogue/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var passed, unsupported int
	line := regexp.MustCompile(`\ne2e: \d+ passed, 0 failed, \d+ not supported on sim \(conditions, healthreports\) in `).FindString(page(t, "README.md"))
	_, _ = fmt.Sscanf(line, "\ne2e: %d passed, 0 failed, %d not supported", &passed, &unsupported)
	if passed+unsupported != len(files) {
		t.Errorf("README.md has %q, and there are %d scenarios: run make readme", line, len(files))
	}
}

var (
	makeTarget = regexp.MustCompile("(?:^|`|\\$ |\n)make ((?:[a-z][a-z0-9-]* ?)+)")
	harness    = regexp.MustCompile("(?:^|`|\\$ |\n| )(?:bin/)?kmsharness ([a-z0-9]+)([^\n`|]*)")
	flagName   = regexp.MustCompile(`--[a-z][a-z-]+`)
)

// mistakes are commands in a text that do not exist.
func mistakes(t *testing.T, text, makefile string) (all []string) {
	code := strings.Join(regexp.MustCompile("(?s)```.*?```|`[^`\n]+`").FindAllString(text, -1), "\n")
	for _, m := range makeTarget.FindAllStringSubmatch(code, -1) {
		for _, target := range strings.Fields(m[1]) {
			if !strings.Contains(makefile, "\n"+target+":") {
				all = append(all, "make "+target)
			}
		}
	}
	for _, m := range harness.FindAllStringSubmatch(code, -1) {
		args := []string{m[1]}
		if next := strings.Fields(m[2] + " -"); slices.Contains([]string{"simulate", "scenario", "plugin", "conform"}, m[1]) && regexp.MustCompile(`^[a-z]+$`).MatchString(next[0]) {
			args = append(args, next[0])
		}
		var help bytes.Buffer
		if code := cli.Main(t.Context(), append(args, "--help"), &help, &help); code != 0 || !strings.Contains(help.String(), "kmsharness "+strings.Join(args, " ")) {
			all = append(all, "kmsharness "+strings.Join(args, " "))
		}
		command, _, _ := strings.Cut(m[2], "'") // a template has flags of another program
		for _, flag := range flagName.FindAllString(command, -1) {
			if text := help.String(); !strings.Contains(text, flag+" ") && !strings.Contains(text, flag+"[=") { // a switch is shown as --switch[=true|false]
				all = append(all, "kmsharness "+strings.Join(args, " ")+" "+flag)
			}
		}
	}
	return all
}

func TestCommandsExist(t *testing.T) {
	makefile := page(t, "Makefile")
	for _, name := range pages(t) {
		if bad := mistakes(t, page(t, name), makefile); len(bad) > 0 {
			t.Errorf("%s: %q do not exist", name, bad)
		}
	}
	bad := mistakes(t, "`kmsharness rum x`, `kmsharness run --labels x`, `make tset`\n```\n$ bin/kmsharness simulate expand F --seed 1\nmake lint e2f\n```\n", makefile)
	if want := []string{"make tset", "make e2f", "kmsharness rum", "kmsharness run --labels", "kmsharness simulate expand"}; !slices.Equal(bad, want) {
		t.Errorf("%q, want %q", bad, want)
	}
}

func TestRenew(t *testing.T) {
	for _, c := range []struct{ shown, got, want string }{
		{"a 1\nb", "a 2\nb", "a 2\nb"},
		{"a 1\nb", "a 2\nnew\nb\nmore", "a 2\n…\nb\n…"}, // what is left out shows
		{"a\n", "a\nmore", "a\n…\n"},
		{"a\n…\nb\n…", "a\nx\ny\nb\nz", "a\n…\nb\n…"},
		{"…\n\nb 12.5s\n", "a\n\nb 1m3.5s", "…\n\nb 1m3.5s\n"},
		{"[  6.3s] met after 257ms of 8s", "[101.9s] met after 1.673s of 8s", "[101.9s] met after 1.673s of 8s"},
		{"…\nx cp-2/1 steps[1] at 2026-11-20T22:56:49.223Z", "x cp-1/1 steps[1] at 2026-11-21T22:56:49.2Z\nx cp-2/1 steps[1] at 2027-11-20T22:56:49.223Z", "…\nx cp-2/1 steps[1] at 2027-11-20T22:56:49.223Z"},
		{"id kek-8bd8306e9925 in …, 12 (7 of 9)", "id kek-aad8306e9925 in 9 s, 5 (8 of 10)", "id kek-aad8306e9925 in …, 5 (8 of 10)"},
		{"a\nb", "a\nc", ""}, // b is gone
		{"b\na", "a\nb", ""},
	} {
		lines, err := renew(strings.Split(c.shown, "\n"), strings.Split(c.got, "\n"))
		if got := strings.Join(lines, "\n"); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q from %q: %q, %v, want %q", c.shown, c.got, got, err, c.want)
		}
	}
}

// Commands are run as they stand there, once each and in their order, and other blocks stay.
func TestUpdate(t *testing.T) {
	const text = "x\n<!-- output: sim -->\n```\n$ echo 1 # why\nold 1\n$ printf 'a\n  b 3'\na\n  b 0\n```\n```\nold\n```\n<!-- output: local: f -->\n```\nold 2\n```\n"
	is, err := update(text, []string{"sim"}, rules{}, func(commands []string) ([]result, error) {
		if want := []string{"echo 1 # why", "printf 'a\n  b 3'"}; !slices.Equal(commands, want) {
			t.Errorf("%q, want %q", commands, want)
		}
		return []result{{"old 1\nnew\n", 0}, {"a\n  b 3", 0}}, nil
	})
	if want := strings.Replace(strings.Replace(text, "old 1\n", "old 1\n…\n", 1), "b 0", "b 3", 1); err != nil || is != want {
		t.Errorf("%v\n%s\nwant\n%s", err, is, want)
	}
	for bad, want := range map[string]string{"<!-- output: sim -->\ntext": "without a fenced block", "<!-- output: sim -->": "without a fenced block",
		"<!-- output: kind -->\n```\n```": "unknown kind", "<!-- output: local: f -->\n```\nold\n```": `nothing in the output is like the line "old"`} {
		if _, err := update(bad, []string{"local"}, rules{}, func([]string) ([]result, error) { return []result{{"new", 0}}, nil }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", bad, err, want)
		}
	}
}

func TestRun(t *testing.T) {
	got, err := run(t.Context(), ".", []string{"echo a; echo b >&2; false", "(echo up; exec tail -f /dev/null) &", "x=1", "kill %1; echo $x", "(echo left; exec tail -f /dev/null) &"})
	if want := []result{{"a\nb\n", 1}, {"up\n", 0}, {"", 0}, {"1\n", 0}, {"left\n", 0}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if _, err := run(t.Context(), ".", []string{"exit 3"}); err == nil {
		t.Error("a shell that ended early is no error")
	}
}

var (
	fenced  = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the anchors that GitHub gives to the headings of a page.
func anchors(text string) (all []string) {
	for _, m := range heading.FindAllStringSubmatch(regexp.MustCompile("(?s)```.*?```").ReplaceAllString(text, ""), -1) {
		all = append(all, strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

// Every relative link of a page leads to a file, and to a heading of it.
func TestLinks(t *testing.T) {
	for _, name := range pages(t) {
		file, text := filepath.Join("..", "..", name), page(t, name)
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			target := file
			if to != "" {
				target = filepath.Join(filepath.Dir(file), to)
			}
			linked, err := os.ReadFile(target)
			if info, failed := os.Stat(target); failed == nil && info.IsDir() {
				err = nil
			}
			if err != nil || anchor != "" && !slices.Contains(anchors(string(linked)), anchor) {
				t.Errorf("%s: the link %s leads nowhere", name, m[1])
			}
		}
	}
}
