package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
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
	empty, pipe := t.TempDir(), filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"run without a file":         {[]string{"run"}, "requires at least 1 arg"},
		"run of a file that is not":  {[]string{"run", dir + "/none.yaml"}, "none.yaml: no file or folder, and no scenario"},
		"run of a mistyped name":     {[]string{"run", "plugin-hang"}, `plugin-hang: no file or folder, and no scenario of the catalogue, has this name, did you mean "plugin-hangs"?`},
		"run of a name twice":        {[]string{"run", file, "plugin-hangs"}, "plugin-hangs: the scenario is given twice"},
		"new from a mistyped name":   {[]string{"scenario", "new", "x", "--title", "X.", "--area", "plugin", "--from", "load-balancer-slo"}, `did you mean "load-balancer-slow"?`},
		"e2e with half a filter":     {[]string{"e2e", "--labels", "area:plugin &&"}, `--labels "area:plugin &&": column 15: `},
		"e2e with a mistyped label":  {[]string{"e2e", "--labels", "area:plugn"}, `did you mean "area:plugin"?`},
		"run of a broken file":       {[]string{"run", bad}, `plugin-hangs.yaml:3:7: kind is "Scenery", expected Scenario`},
		"run never":                  {[]string{"run", file, "--repeat", "0"}, "--repeat 0: expected at least 1"},
		"run for ever, twice":        {[]string{"run", file, "--until-failure", "--repeat", "2"}, "--until-failure and --repeat 2: expected one of them"},
		"report of nothing":          {[]string{"report"}, "requires at least 1 arg"},
		"report of no folder":        {[]string{"report", dir + "/none"}, "none: expected the output folder of a run"},
		"report of an empty folder":  {[]string{"report", empty}, "no run in " + empty + ", expected folders with a history.jsonl"},
		"report of two into none":    {[]string{"report", dir, dir}, "name the folder of the page with --out"},
		"diff of one":                {[]string{"diff", file}, "accepts 2 arg(s), received 1"},
		"diff of what is no history": {[]string{"diff", file, file}, "plugin-hangs.yaml: line 1: not a history event"},
		"check of a pipe":            {[]string{"check", pipe}, "pipe: expected a regular file, or - for standard input"},
		"run of a pipe":              {[]string{"run", pipe}, "pipe: expected a regular file, or - for standard input"},
		"compare a pipe":             {[]string{"conform", "compare", pipe, pipe}, "pipe: expected a regular file, or - for standard input"},
		"a profile from a pipe":      {[]string{"profiles", pipe}, "pipe: expected a regular file, or - for standard input"},
		"simulate words":             {[]string{"simulate", "--seeds", "many"}, `--seeds "many": expected a seed`},
		"simulate backwards":         {[]string{"simulate", "--seeds", "9-1"}, `--seeds "9-1": expected a seed`},
		"simulate by magic":          {[]string{"simulate", "--ssa", "magic"}, `--ssa "magic": expected one of real, model`},
		"simulate nothing at a time": {[]string{"simulate", "--jobs", "0"}, "--jobs 0: expected at least 1"},
		"run on an unknown backend":  {[]string{"run", file, "--backend", "cloud"}, `--backend "cloud": expected auto, sim, local or kind`},
		"run with a bad template":    {[]string{"run", file, "--out", dir, "--reporter-command", "r {nodes}"}, "{nodes} is unknown: expected one of {sockets}"},
		"run with an open quote":     {[]string{"run", file, "--out", dir, "--plugin-args", "--fault 'hang"}, "a quote ' is not closed"},
		"run with no such reporter":  {[]string{"run", file, "--out", dir, "--reporter-command", dir + "/none --x"}, "--reporter-command: program \"" + dir + "/none\": there is no file"},
		"e2e with no aggregator":     {[]string{"e2e", "--out", dir, "--aggregator-command", "no-such-program"}, `--aggregator-command: program "no-such-program": no executable file of this name is on PATH`},
		"certify no such operator":   {[]string{"conform", "operator", "--out", dir + "/o", "--backend", "local", "--command", "no-such-program"}, `--operator-command: program "no-such-program": no executable file`},
		"run behind no such door":    {[]string{"run", file, "--out", dir + "/o", "--operator-door", "back"}, `--operator-door "back": expected controllers or whole`},
		"run a door without program": {[]string{"run", file, "--out", dir + "/o", "--operator-door", "whole"}, "--operator-door whole: expected with --operator-command only"},
		"run a whole one on kind":    {[]string{"run", file, "--out", dir + "/o", "--backend", "kind", "--operator-door", "whole", "--operator-command", "true"}, "--operator-door whole: expected {podImage} in --operator-command"},
		"e2e with a folder, on kind": {[]string{"e2e", "--out", dir, "--backend", "kind", "--reporter-command", dir}, "which has /kms-health-reporter only"},
		"run with an unknown flag":   {[]string{"run", file, "--labels", "x"}, "unknown flag: --labels"},
		"run an image on local":      {[]string{"run", file, "--out", dir + "/o", "--backend", "local", "--reporter-image", "i"}, "with --backend kind only"},
		"run an image and a command": {[]string{"run", file, "--out", dir + "/o", "--backend", "kind", "--reporter-image", "i", "--reporter-command", "r"}, "expected one of them"},
		"an operator image on sim":   {[]string{"run", file, "--out", dir + "/o", "--backend", "sim", "--operator-image", "i"}, "--operator-image and --operator-args: expected with --backend kind only"},
		"an operator image, local":   {[]string{"e2e", "--out", dir + "/o", "--backend", "local", "--operator-image", "i"}, "--operator-image and --operator-args: expected with --backend kind only"},
		"two operators":              {[]string{"run", file, "--out", dir + "/o", "--backend", "kind", "--operator-image", "i", "--operator-command", "true"}, "--operator-image beside --operator-command: expected one of them"},
		"arguments of no operator":   {[]string{"run", file, "--out", dir + "/o", "--backend", "kind", "--operator-args", "--x"}, "--operator-args without --operator-image: expected both"},
		"a whole operator's image":   {[]string{"run", file, "--out", dir + "/o", "--backend", "kind", "--operator-image", "i", "--operator-door", "whole"}, "--operator-door whole: expected with --operator-command only"},
		"run a plugin image on sim":  {[]string{"run", file, "--out", dir + "/o", "--backend", "sim", "--plugin-image", "i", "--plugin-command", "/p {socket}"}, "--plugin-image: expected with --backend kind only"},
		"e2e a plugin image, local":  {[]string{"e2e", "--out", dir + "/o", "--plugin-image", "i", "--plugin-command", "/p {socket}"}, "--plugin-image: expected with --backend kind only"},
		"run a plugin image alone":   {[]string{"run", file, "--out", dir + "/o", "--backend", "kind", "--plugin-image", "i"}, "expected with --plugin-command only"},
		"run a plugin without image": {[]string{"run", file, "--out", dir + "/o", "--backend", "kind", "--plugin-command", "/p {socket}"}, "--plugin-command without --plugin-image: expected both"},
		"run a name in an image":     {[]string{"run", file, "--out", dir + "/o", "--backend", "kind", "--plugin-image", "i", "--plugin-command", "p {socket}"}, `program "p": expected an absolute path in the image of --plugin-image`},
		"run without the hook":       {[]string{"run", file, "--out", dir + "/o", "--backend", "kind", "--plugin-image", "i", "--plugin-command", "/p {socket}", "--plugin-rotate", dir + "/none"}, "--plugin-rotate: program"},
		"run with odd artifacts":     {[]string{"run", file, "--artifacts", "sometimes"}, `--artifacts "sometimes": expected on-failure, always or never`},
		"e2e with odd artifacts":     {[]string{"e2e", "--artifacts", "sometimes"}, `--artifacts "sometimes": expected on-failure, always or never`},
		"run into a file":            {[]string{"run", file, "--out", bad}, "plugin-hangs.yaml"},
		"e2e with an argument":       {[]string{"e2e", file}, "unknown command"},
		"e2e side by side with none": {[]string{"e2e", "--procs", "0"}, "--procs 0: expected 1 to 16"},
		"check without a file":       {[]string{"check"}, "requires at least 1 arg"},
		"check of a file that isn't": {[]string{"check", dir + "/none.jsonl"}, "none.jsonl"},
		"check of no history":        {[]string{"check", write("h.jsonl", "{}\n")}, `h.jsonl: line 1: first event is "", expected "run"`},
		"diff of no run":             {[]string{"diff", dir, dir}, "no scenario has a result.json in it, expected the output folder of a run"},
		"diff of a file and a run":   {[]string{"diff", file, dir}, "plugin-hangs.yaml: expected the output folder of a run"},
		"an unknown command":         {[]string{"rum"}, `unknown command "rum" for "kmsharness", did you mean "run"?`},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := command(t, c.args...)
			if code != ExitCouldNotRun || !strings.Contains(errs, c.want) || strings.Count(strings.TrimSpace(errs), "\n") != 0 {
				t.Errorf("exit %d, stderr %q, stdout %q; want exit 2 and one line with %q", code, errs, out, c.want)
			}
		})
	}
}

// What is printed to reproduce a failure is understood by the same commands.
func TestFlagsReproduceTheOptions(t *testing.T) {
	o := choose.Options{Options: local.Options{SystemUnderTest: live.SystemUnderTest{ReporterCommand: "r --note 'it''s'", AggregatorCommand: "a", ReporterIdentity: "admin"}, PluginArgs: "--fault hang", ReporterMountSockets: true}, ReporterImage: "i", OperatorImage: "o", OperatorArgs: "--x"}
	want := `--reporter-command 'r --note '\''it'\'''\''s'\''' --aggregator-command 'a' --reporter-identity 'admin' --plugin-args '--fault hang' --reporter-mount-sockets --reporter-image 'i' --operator-image 'o' --operator-args '--x'`
	if got := strings.Join(o.Flags(), " "); got != want {
		t.Errorf("flags %s, want %s", got, want)
	}
	cmd := newRunCommand(standard.Extensions{})
	for _, f := range o.Flags() {
		name, isFlag := strings.CutPrefix(f, "--")
		if isFlag && cmd.Flags().Lookup(name) == nil {
			t.Errorf("kmsharness run has no flag %s", f)
		}
	}
}
