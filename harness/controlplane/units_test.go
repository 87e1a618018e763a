package controlplane_test

import (
	"os"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/process"
)

func TestOptionErrors(t *testing.T) {
	supervisor := process.New(process.Options{})
	defer supervisor.Close(t.Context())
	good := func() controlplane.Options {
		return controlplane.Options{
			Binaries: assets.Binaries{Etcd: "etcd", KubeAPIServer: "kube-apiserver"}, Supervisor: supervisor,
			Dir: t.TempDir(), LogDir: t.TempDir(), Servers: []controlplane.ServerSpec{{Name: "cp-1"}},
		}
	}
	cp, err := controlplane.New(good())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := cp.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	provider := func(key, socket string) controlplane.Provider {
		return controlplane.KMS(controlplane.KMSProvider{KeyID: key, Socket: socket})
	}
	for name, spoil := range map[string]func(*controlplane.Options){
		"no binaries":     func(o *controlplane.Options) { o.Binaries = assets.Binaries{} },
		"no supervisor":   func(o *controlplane.Options) { o.Supervisor = nil },
		"no directory":    func(o *controlplane.Options) { o.Dir = "" },
		"negative poll":   func(o *controlplane.Options) { o.EncryptionPoll = -1 },
		"name is a path":  func(o *controlplane.Options) { o.Servers[0].Name = "../x" },
		"no such release": func(o *controlplane.Options) { o.Servers[0].Release = "1.36" },
		"same name twice": func(o *controlplane.Options) { o.Servers = append(o.Servers, o.Servers[0]) },
		"keyID twice": func(o *controlplane.Options) {
			o.Servers[0].Encryption.Providers = []controlplane.Provider{provider("1", "/a"), provider("1", "/b")}
		},
	} {
		opts := good()
		spoil(&opts)
		if _, err := controlplane.New(opts); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: expected one line, got %v", name, err)
		}
	}
}

// A bad encryption configuration leaves the old file alone, and a good one leaves nothing else behind.
func TestSetEncryption(t *testing.T) {
	supervisor := process.New(process.Options{})
	defer supervisor.Close(t.Context())
	cp, err := controlplane.New(controlplane.Options{
		Binaries: assets.Binaries{Etcd: "etcd", KubeAPIServer: "kube-apiserver"}, Supervisor: supervisor,
		Dir: t.TempDir(), LogDir: t.TempDir(), Servers: []controlplane.ServerSpec{{Name: "cp-1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer cp.Close(t.Context())
	s := cp.Servers()[0]
	before, err := os.ReadFile(s.EncryptionFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetEncryption(controlplane.Encryption{Resources: []string{"Secrets"}}); err == nil {
		t.Error("a bad configuration was accepted")
	}
	after, err := os.ReadFile(s.EncryptionFile)
	if err != nil || string(after) != string(before) {
		t.Errorf("the file changed to %s, %v", after, err)
	}
}
