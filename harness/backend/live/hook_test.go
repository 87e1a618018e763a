package live

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
)

func TestRealPluginMistakes(t *testing.T) {
	for _, c := range []struct {
		p    RealPlugin
		want string
	}{
		{RealPlugin{}, ""},
		{RealPlugin{Command: "p --listen {socket}"}, ""},
		{RealPlugin{Command: "p {endpoint} {state} {shared} {node} {keyID}", Break: "b", Restore: "r {node}", Rotate: "t"}, ""},
		{RealPlugin{Command: "p"}, "expected {socket}"},
		{RealPlugin{Command: "p {sockets}"}, "placeholder {sockets} is unknown: expected one of {socket}"},
		{RealPlugin{Command: "p {socket} 'x"}, "a quote ' is not closed"},
		{RealPlugin{Command: "p {socket}", Rotate: "r {kubeconfig}"}, "--plugin-rotate: command"},
		{RealPlugin{Command: "p {socket}", Break: "b"}, "--plugin-break and --plugin-restore: expected both"},
		{RealPlugin{Version: "1"}, "with --plugin-command only"},
		{RealPlugin{Image: "p:dev"}, "with --plugin-command only"},
		{RealPlugin{Image: "p:dev", Command: "/p {socket}"}, ""},
		{RealPlugin{Image: "p:dev", Command: "p {socket}"}, `--plugin-command: program "p": expected an absolute path in the image`},
	} {
		err := SystemUnderTest{Plugin: c.p}.Validate()
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%+v: %v, want %q", c.p, err, c.want)
		}
	}
}

func TestRealPluginIsNamed(t *testing.T) {
	for want, p := range map[string]RealPlugin{
		"": {}, "my-plugin 1.2": {Command: "/opt/my-plugin {socket}", Version: "1.2"}, "Vault": {Command: "v {socket}", Name: "Vault"},
	} {
		if got := p.Implementation().String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestInstance: the folders of a plugin stay the same, and those of different API servers are apart.
func TestInstance(t *testing.T) {
	p := history.Process{Role: history.RolePlugin, Node: "cp-1", KeyID: "2"}
	one, err := NewInstance(p, "/run/n1", "/own", "/run")
	if err != nil {
		t.Fatal(err)
	}
	p.APIServer = "oauth-apiserver"
	other, _ := NewInstance(p, "/run/n1", "/own", "/run")
	if one["endpoint"] != "unix:///run/n1/real-2.sock" || one["shared"] != "/run/plugin-shared/2" || one["state"] != "/own/plugin-state/cp-1-2" ||
		other["shared"] != "/run/plugin-shared/oauth-apiserver-2" || other["state"] == one["state"] {
		t.Errorf("%v, %v", one, other)
	}
	if _, err := NewInstance(p, "/"+strings.Repeat("x", 120), "/own", "/run"); err == nil {
		t.Error("a path that no socket can have")
	}
}
