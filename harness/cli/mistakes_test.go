package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/kmsharness/kmsharness/internal/program"
)

// Every mistake on the command line is one line that names the mistake and what was expected, and exit code 2: it says
// nothing about the system under test. Nothing is booted for any of them.
func TestMistakesAreOneLine(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := "../../scenarios/catalogue/plugin-hangs.yaml"
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bad := write("plugin-hangs.yaml", strings.Replace(string(good), "kind: Scenario", "kind: Scenery", 1))
	system := func(name, text string) string {
		return write(name, "apiVersion: kmsharness.io/v1alpha1\nkind: SystemUnderTest\n"+text)
	}
	empty, pipe := t.TempDir(), filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"run without a file":          {[]string{"run"}, "requires at least 1 arg"},
		"run of a file that is not":   {[]string{"run", dir + "/none.yaml"}, "none.yaml: no file or folder, and no scenario"},
		"run of a mistyped name":      {[]string{"run", "plugin-hang"}, `plugin-hang: no file or folder, and no scenario of the catalogue, has this name, did you mean "plugin-hangs"?`},
		"run of a name twice":         {[]string{"run", file, "plugin-hangs"}, "plugin-hangs: the scenario is given twice"},
		"new from a mistyped name":    {[]string{"scenario", "new", "x", "--title", "X.", "--area", "plugin", "--from", "load-balancer-slo"}, `did you mean "load-balancer-slow"?`},
		"e2e with half a filter":      {[]string{"e2e", "--labels", "area:plugin &&"}, `--labels "area:plugin &&": column 15: `},
		"e2e with a mistyped label":   {[]string{"e2e", "--labels", "area:plugn"}, `did you mean "area:plugin"?`},
		"run of a broken file":        {[]string{"run", bad}, `plugin-hangs.yaml:3:7: kind is "Scenery", expected Scenario`},
		"run never":                   {[]string{"run", file, "--repeat", "0"}, "--repeat 0: expected at least 1"},
		"run for ever, twice":         {[]string{"run", file, "--until-failure", "--repeat", "2"}, "--until-failure and --repeat 2: expected one of them"},
		"report of nothing":           {[]string{"report"}, "requires at least 1 arg"},
		"report of no folder":         {[]string{"report", dir + "/none"}, "none: expected the output folder of a run"},
		"report of an empty folder":   {[]string{"report", empty}, "no run in " + empty + ", expected folders with a history.jsonl"},
		"report of two into none":     {[]string{"report", dir, dir}, "name the folder of the page with --out"},
		"diff of one":                 {[]string{"diff", file}, "accepts 2 arg(s), received 1"},
		"diff of what is no history":  {[]string{"diff", file, file}, "plugin-hangs.yaml: line 1: not a history event"},
		"check of a pipe":             {[]string{"check", pipe}, "pipe: expected a regular file, or - for standard input"},
		"run of a pipe":               {[]string{"run", pipe}, "pipe: expected a regular file, or - for standard input"},
		"compare a pipe":              {[]string{"conform", "compare", pipe, pipe}, "pipe: expected a regular file, or - for standard input"},
		"a profile from a pipe":       {[]string{"profiles", pipe}, "pipe: expected a regular file, or - for standard input"},
		"simulate words":              {[]string{"simulate", "--seeds", "many"}, `--seeds "many": expected a seed`},
		"simulate backwards":          {[]string{"simulate", "--seeds", "9-1"}, `--seeds "9-1": expected a seed`},
		"simulate nothing at a time":  {[]string{"simulate", "--jobs", "0"}, "--jobs 0: expected at least 1"},
		"run on an unknown backend":   {[]string{"run", file, "--backend", "cloud"}, `"cloud" for "--backend" flag: expected sim, local, kind or auto`},
		"run with a bad template":     {[]string{"run", file, "--out", dir, "--reporter-command", "r {nodes}"}, "{nodes} is unknown: expected one of {sockets}"},
		"run with an open quote":      {[]string{"run", file, "--out", dir, "--plugin-command", "p {socket} 'x"}, "a quote ' is not closed"},
		"run with no such reporter":   {[]string{"run", file, "--out", dir, "--reporter-command", dir + "/none --x"}, "--reporter-command: program \"" + dir + "/none\": there is no file"},
		"e2e with no aggregator":      {[]string{"e2e", "--out", dir, "--aggregator-command", "no-such-program"}, `--aggregator-command: program "no-such-program": no executable file of this name is on PATH`},
		"certify no such operator":    {[]string{"conform", "operator", "--out", dir + "/o", "--backend", "local", "--operator-command", "no-such-program"}, `--operator-command: program "no-such-program": no executable file`},
		"run with no such scope":      {[]string{"run", file, "--out", dir + "/o", "--operator-scope", "back"}, `"back" for "--operator-scope" flag: expected encryption or full`},
		"a scope without an operator": {[]string{"run", file, "--out", dir + "/o", "--operator-scope", "full"}, "--operator-scope: full: expected with operator.command only"},
		"a full operator on kind":     {[]string{"run", file, "--out", dir + "/o", "--backend", "kind", "--operator-scope", "full", "--operator-command", "true"}, "--operator-scope: full: expected {podImage} in operator.command"},
		"a mistyped field":            {[]string{"run", file, "--system", system("typed.yaml", "reporter:\n  comand: r\n")}, `typed.yaml:4:3: unknown field "comand", did you mean "command"?`},
		"a system of another kind":    {[]string{"e2e", "--system", file}, `plugin-hangs.yaml:`},
		"no system":                   {[]string{"conform", "reporter", "--system", dir + "/none"}, "--system open " + dir + "/none: no such file"},
		"e2e with a folder, on kind":  {[]string{"e2e", "--out", dir, "--backend", "kind", "--reporter-command", dir}, "which has /kms-health-reporter only"},
		"run with an unknown flag":    {[]string{"run", file, "--labels", "x"}, "unknown flag: --labels"},
		"run an image on local":       {[]string{"run", file, "--out", dir + "/o", "--backend", "local", "--system", system("image.yaml", "reporter: {image: i}\n")}, "image.yaml:3:19: reporter.image: expected with --backend kind only"},
		"run an image and a command":  {[]string{"run", file, "--out", dir + "/o", "--backend", "kind", "--system", system("image.yaml", "reporter: {image: i}\n"), "--reporter-command", "r"}, "reporter.image: expected without reporter.command"},
		"an operator's image on sim":  {[]string{"e2e", "--out", dir + "/o", "--backend", "sim", "--system", system("operator.yaml", "operator: {image: i}\n")}, "operator.image: expected with --backend kind only"},
		"arguments of no operator":    {[]string{"run", file, "--out", dir + "/o", "--backend", "kind", "--system", system("args.yaml", "operator: {args: --x}\n")}, "args.yaml:3:18: operator.args: expected with operator.image only"},
		"a plugin's image alone":      {[]string{"run", file, "--out", dir + "/o", "--backend", "kind", "--system", system("plugin.yaml", "plugin: {image: i}\n")}, "plugin: expected with plugin.command only"},
		"run a plugin without image":  {[]string{"run", file, "--out", dir + "/o", "--backend", "kind", "--plugin-command", "/p {socket}"}, "--plugin-command: expected with plugin.image"},
		"run without the hook":        {[]string{"run", file, "--out", dir + "/o", "--backend", "kind", "--system", system("hook.yaml", "plugin: {image: i, command: '/p {socket}', rotate: "+dir+"/none}\n")}, "hook.yaml:3:52: plugin.rotate: program"},
		"another program on sim":      {[]string{"run", file, "--out", dir + "/o", "--backend", "sim", "--reporter-command", dir + "/r"}, "--reporter-command: program"},
		"run with odd artifacts":      {[]string{"run", file, "--artifacts", "sometimes"}, `"sometimes" for "--artifacts" flag: expected on-failure, always or never`},
		"e2e with odd artifacts":      {[]string{"e2e", "--artifacts", "sometimes"}, `"sometimes" for "--artifacts" flag: expected on-failure, always or never`},
		"run into a file":             {[]string{"run", file, "--out", bad}, "plugin-hangs.yaml"},
		"e2e with an argument":        {[]string{"e2e", file}, "unknown command"},
		"e2e side by side with none":  {[]string{"e2e", "--procs", "0"}, "--procs 0: expected 1 to 16"},
		"check without a file":        {[]string{"check"}, "requires at least 1 arg"},
		"check of a file that isn't":  {[]string{"check", dir + "/none.jsonl"}, "none.jsonl"},
		"check of no history":         {[]string{"check", write("h.jsonl", "{}\n")}, `h.jsonl: line 1: first event is "", expected "run"`},
		"diff of no run":              {[]string{"diff", dir, dir}, "no scenario has a result.json in it, expected the output folder of a run"},
		"diff of a file and a run":    {[]string{"diff", file, dir}, "plugin-hangs.yaml: expected the output folder of a run"},
		"an unknown command":          {[]string{"rum"}, `unknown command "rum" for "kmsharness", did you mean "run"?`},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := command(t, c.args...)
			if code != program.ExitCouldNotRun || !strings.Contains(errs, c.want) || strings.Count(strings.TrimSpace(errs), "\n") != 0 {
				t.Errorf("exit %d, stderr %q, stdout %q; want exit 2 and one line with %q", code, errs, out, c.want)
			}
		})
	}
}

// What is printed to reproduce a failure are the flags that were given, quoted for a shell.
func TestFlagsReproduceTheRun(t *testing.T) {
	var f runFlags
	cmd := &cobra.Command{}
	f.register(cmd)
	err := cmd.ParseFlags([]string{"--reporter-command", "r --note 'it''s'", "--system=s.yaml", "--out", "o", "--seed=7", "--strict"})
	if want := `--reporter-command 'r --note '\''it'\'''\''s'\''' --system s.yaml --strict`; err != nil || strings.Join(f.judgedAlike(), " ") != want {
		t.Errorf("%v, %v, want %s", f.judgedAlike(), err, want)
	}
}
