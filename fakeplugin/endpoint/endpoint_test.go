package endpoint

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/internal/host"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]Endpoint{
		"unix:///run/kms-1.sock": {"unix", "/run/kms-1.sock"},
		"unix:///@kms":           {"unix", "@kms"},
		"tcp://127.0.0.1:80":     {"tcp", "127.0.0.1:80"},
	} {
		got, err := Parse(in)
		if err != nil || got != want || got.String() != in {
			t.Errorf("Parse(%q) = %v (%s), %v; want %v", in, got, got, err, want)
		}
	}
	for in, text := range map[string]string{
		"":                                    "empty string",
		"/run/kms.sock":                       "unsupported scheme",
		"tcp://nowhere":                       "tcp://HOST:PORT",
		"unix://":                             "unix:///PATH",
		"unix:///@":                           "unix:///PATH",
		"unix:///" + strings.Repeat("a", 200): "at most 107",
	} {
		if _, err := Parse(in); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("Parse(%.20q) error %v, want one with %q", in, err, text)
		}
	}
}

func TestListenReplacesWhatAKilledProcessLeft(t *testing.T) {
	e := Endpoint{"unix", filepath.Join(t.TempDir(), "kms.sock")}
	for _, leave := range []func() error{
		func() error { // a stale socket: nobody listens any more
			l, err := Listen(host.Host{}, e, DefaultMode)
			if err != nil {
				return err
			}
			return l.Close()
		},
		func() error { return os.WriteFile(e.Address, []byte(DecoyText), 0o600) },
	} {
		_ = os.Remove(e.Address)
		if err := leave(); err != nil {
			t.Fatal(err)
		}
		l, err := Listen(host.Host{}, e, DefaultMode)
		if err != nil {
			t.Fatalf("listen over the leftover: %v", err)
		}
		info, err := os.Stat(e.Address)
		if err != nil || info.Mode().Perm() != DefaultMode {
			t.Errorf("mode of the socket: %v, %v", info, err)
		}
		conn, err := e.Dial(context.Background(), host.Host{})
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		_ = l.Close()
	}
}

func TestListenLeavesOthersAlone(t *testing.T) {
	e := Endpoint{"unix", filepath.Join(t.TempDir(), "kms.sock")}
	l, err := net.Listen("unix", e.Address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(host.Host{}, e, DefaultMode); err == nil || !strings.Contains(err.Error(), "another process serves") {
		t.Errorf("listen over a live socket: %v", err)
	}
	_ = l.Close()
	if err := os.WriteFile(e.Address, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(host.Host{}, e, DefaultMode); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("listen over a foreign file: %v", err)
	}
}
