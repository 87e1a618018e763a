package live

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
)

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
