package recorder

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

// What is no socket is left out. Of a plugin under test the mode is that of its own socket.
func TestSockets(t *testing.T) {
	dir := t.TempDir()
	listen := func(name string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := filepath.Join(dir, "kms-3.sock")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fake, behind := listen("kms-1.sock", 0o660), listen("real-2.sock", 0o666)
	uid, gid := os.Getuid(), os.Getgid()
	n := &cluster.Node{ReporterPlace: cluster.Place{SocketDir: "/in"}}
	n.AddPlugin(&cluster.Plugin{KeyID: "1", Socket: fake, User: 7})
	n.AddPlugin(&cluster.Plugin{KeyID: "2", Socket: filepath.Join(dir, "kms-2.sock"), Instance: cluster.Instance{undertest.PlaceSocket: behind}})
	n.AddPlugin(&cluster.Plugin{KeyID: "3", Socket: file})
	n.AddPlugin(&cluster.Plugin{KeyID: "4", Socket: filepath.Join(dir, "kms-4.sock")})
	n.AddPlugin(&cluster.Plugin{KeyID: "5"})
	want := []history.Socket{
		{KeyID: "1", Path: "/in/kms-1.sock", Mode: "660", UID: uid, GID: gid, User: 7}, {KeyID: "2", Path: "/in/kms-2.sock", Mode: "666", UID: uid, GID: gid},
	}
	if got := socketsOf(n); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
