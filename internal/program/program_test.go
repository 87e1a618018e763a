package program_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	conformance "github.com/kmsharness/kmsharness/conformance/command"
	plugin "github.com/kmsharness/kmsharness/fakeplugin/cli"
	harness "github.com/kmsharness/kmsharness/harness/cli"
	"github.com/kmsharness/kmsharness/harness/testsext"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/internal/version"
)

type program func(ctx context.Context, args []string, stdout, stderr io.Writer) int

func programs() map[string]program {
	return map[string]program{"kmsharness": harness.Main, "kms-conformance": conformance.Main, "kmsharness-tests-ext": testsext.Main, "fake-kms-plugin": func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		return plugin.Main(ctx, host.Host{}, args, stdout, stderr)
	}}
}

func (p program) run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = p(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// commands returns the commands of a group, as its help lists them; none for a command that is no group.
func (p program) commands(t *testing.T, path []string) (names []string) {
	_, out, _ := p.run(t, append(slices.Clone(path), "--help")...)
	_, list, _ := strings.Cut(out, "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.Lines(list) {
		names = append(names, strings.Fields(line)[0])
	}
	return names
}

// TestUnknownCommands: every group of every program refuses a mistyped command, and names the one that was meant.
func TestUnknownCommands(t *testing.T) {
	for name, p := range programs() {
		t.Run(name, func(t *testing.T) {
			groups := 0
			var walk func(path []string)
			walk = func(path []string) {
				commands := p.commands(t, path)
				if len(commands) == 0 || slices.Contains(path, "help") {
					return
				}
				groups++
				for _, help := range [][]string{nil, {"help"}} {
					p.refuses(t, slices.Concat(help, path, []string{"nope"}), `unknown command "nope" for "`+strings.Join(append([]string{name}, path...), " ")+`", expected `+commands[0])
				}
				for _, c := range commands {
					typed := c[1:2] + c[:1] + c[2:]
					p.refuses(t, slices.Concat(path, []string{typed, "--nope"}), `unknown command "`+typed+`" for`, `did you mean "`+c+`"?`)
					walk(slices.Concat(path, []string{c}))
				}
			}
			walk(nil)
			if name == "kmsharness" && groups < 4 || groups < 1 { // the root, and groups of its own
				t.Errorf("the walk found %d groups", groups)
			}
		})
	}
}

func (p program) refuses(t *testing.T, args []string, want ...string) {
	t.Helper()
	code, out, errs := p.run(t, args...)
	if code != 2 || out != "" || strings.Count(errs, "\n") != 1 {
		t.Errorf("%q: exit %d, stdout %q, stderr %q, want exit 2 and one line", args, code, out, errs)
	}
	for _, w := range want {
		if !strings.Contains(errs, w) {
			t.Errorf("%q: stderr %q, want %q", args, errs, w)
		}
	}
}

func TestUnknownFlags(t *testing.T) {
	harnessProgram := program(harness.Main)
	harnessProgram.refuses(t, []string{"e2e", "--labls", "slow"}, `unknown flag: --labls, did you mean "--labels"?`)
	harnessProgram.refuses(t, []string{"e2e", "--zzz"}, "unknown flag: --zzz: see kmsharness e2e --help\n")
}

func TestVersion(t *testing.T) {
	for name, p := range programs() {
		for _, args := range [][]string{{"version"}, {"--version"}} {
			code, out, errs := p.run(t, args...)
			if code != 0 || out != version.Read().Line(name) || errs != "" {
				t.Errorf("%s %q: exit %d, %q, %q", name, args, code, out, errs)
			}
		}
		_, out, _ := p.run(t, "version", "-o", "json")
		var got version.Info
		if err := json.Unmarshal([]byte(out), &got); err != nil || got.Go == "" || !slices.Equal(got.Kubernetes, []string{version.Kubernetes}) {
			t.Errorf("%s: %v in %q", name, err, out)
		}
		p.refuses(t, []string{"version", "-o", "xml"}, `"xml" for "-o, --output" flag: expected json or yaml: see `)
	}
}
