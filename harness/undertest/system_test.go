package undertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestPluginMistakes(t *testing.T) {
	for _, c := range []struct {
		p    Plugin
		want string
	}{
		{Plugin{}, ""},
		{Plugin{Command: "p --listen {socket}"}, ""},
		{Plugin{Command: "p {endpoint} {state} {shared} {node} {keyID}", Break: "b", Restore: "r {node}", Rotate: "t"}, ""},
		{Plugin{Command: "p"}, "expected {socket}"},
		{Plugin{Command: "p {sockets}"}, "placeholder {sockets} is unknown: expected one of {socket}"},
		{Plugin{Command: "p {socket} 'x"}, "a quote ' is not closed"},
		{Plugin{Command: "p {socket}", Rotate: "r {kubeconfig}"}, "plugin.rotate: command"},
		{Plugin{Command: "p {socket}", Break: "b"}, "plugin.break: expected with plugin.restore"},
		{Plugin{Product: Product{Version: "1"}}, "with plugin.command only"},
		{Plugin{Image: "p:dev"}, "with plugin.command only"},
		{Plugin{Image: "p:dev", Command: "/p {socket}"}, ""},
		{Plugin{Image: "p:dev", Command: "p {socket}"}, `plugin.command: program "p": expected an absolute path in plugin.image`},
	} {
		err := System{Plugin: c.p}.Validate()
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%+v: %v, want %q", c.p, err, c.want)
		}
	}
}

func TestPluginIsNamed(t *testing.T) {
	for want, p := range map[string]Plugin{
		"": {}, "my-plugin 1.2": {Command: "/opt/my-plugin {socket}", Product: Product{Version: "1.2"}}, "Vault": {Command: "v {socket}", Product: Product{Name: "Vault"}},
	} {
		if got := p.Implementation().String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestNameOf(t *testing.T) {
	for text, want := range map[string]string{
		"/bin/mine --x": "mine", "env A=1 B='2 3' /bin/mine --x=y": "mine", "/usr/bin/env -i A=1 mine": "env", "env A=1": "env", "": "",
	} {
		if got := NameOf(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	for want, s := range map[string]System{
		"": {},
		"reporter.command: command \"x {nodes}\": placeholder {nodes} is unknown": {Reporter: Reporter{Command: "x {nodes}"}},
		"aggregator.command: ":                                                     {Aggregator: Aggregator{Command: "x {nodes}"}},
		`reporter.identity: "root": expected least or admin`:                       {Reporter: Reporter{Identity: "root"}},
		`operator.scope: "ful": expected encryption or full, did you mean "full"?`: {Operator: Operator{Command: "o", Scope: "ful"}},
		"operator.scope: full: expected with operator.command only":                {Operator: Operator{Scope: ScopeFull}},
		"operator.patience: -1: expected 1 or more":                                {Operator: Operator{Patience: -1}},
		"operator.image: expected without operator.command":                        {Operator: Operator{Command: "o", Image: "i"}},
		"reporter.args: expected with reporter.image only":                         {Reporter: Reporter{Args: "--x"}},
		"fakePlugin.args: command \"--fault 'hang\": a quote ' is not closed":      {FakePlugin: FakePlugin{Args: "--fault 'hang"}},
	} {
		err := s.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
}

// parsed returns the flags of a command that was given a file and arguments.
func parsed(t *testing.T, text string, args ...string) (f *Flags, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "system.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := &cobra.Command{}
	f = AddFlags(cmd)
	if err := cmd.ParseFlags(append(args, "--system", file)); err != nil {
		t.Fatal(err)
	}
	return f, file
}

const head = "apiVersion: kmsharness.io/v1alpha1\nkind: SystemUnderTest\n"

// TestFileAndFlags: flags override the file, wherever they stand, and what is encoded is read again.
func TestFileAndFlags(t *testing.T) {
	f, _ := parsed(t, head+"reporter: {command: r, identity: admin}\noperator: {command: o, patience: 4}\nplugin: {command: 'p {socket}', version: v1}\n", "--reporter-command=mine", "--operator-patience=8")
	got, err := f.System()
	want := System{Reporter: Reporter{Command: "mine", Identity: "admin"}, Operator: Operator{Command: "o", Patience: 8}, Plugin: Plugin{Command: "p {socket}", Product: Product{Version: "v1"}}}
	if err != nil || got != want {
		t.Fatalf("%+v, %v, want %+v", got, err, want)
	}
	text, err := got.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, _ := parsed(t, string(text))
	if got, err := again.System(); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

// TestMistakesInFiles: a mistake is one line with its place; what a flag has caused names the flag.
func TestMistakesInFiles(t *testing.T) {
	for _, c := range []struct {
		text, want string
		args       []string
	}{
		{head + "reporter:\n  comand: r\n", `FILE:4:3: unknown field "comand", did you mean "command"?`, nil},
		{head + "reporters: {}\n", `FILE:3:1: unknown field "reporters", did you mean "reporter"?`, nil},
		{head + "operator: {command: o, patience: much}\n", `FILE:3:34: operator.patience: a string, expected int`, nil},
		{head + "operator: {command: o, scope: half}\n", `FILE:3:31: operator.scope: "half": expected encryption or full`, nil},
		{"kind: Scenario\n", `FILE: apiVersion "" and kind "Scenario", expected kmsharness.io/v1alpha1 and SystemUnderTest`, nil},
		{"", "FILE:1:1: file is empty, expected kind: SystemUnderTest", nil},
		{head + "reporter: {command: a, command: b}\n", `FILE:3:24: field "command" occurs twice`, nil},
		{head + "reporter: [\n", "FILE:4:1: not valid YAML: did not find expected node content", nil},
		{head, `--operator-scope: full: expected`, []string{"--operator-scope=full"}},
	} {
		f, file := parsed(t, c.text, c.args...)
		s, err := f.System()
		if err == nil {
			err = f.Explain(s.Validate())
		}
		if err == nil || !strings.HasPrefix(strings.ReplaceAll(strings.TrimPrefix(err.Error(), "--system "), file, "FILE"), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

// TestExamples: the files that the documentation names can be used.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../docs/systems/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples, %v", err)
	}
	for _, file := range files {
		s, err := Read(file)
		if err == nil {
			err = s.Validate()
		}
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
