package probe

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/contract"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ample = 20 * time.Second // a deadline that no test means to meet

func TestAnswers(t *testing.T) {
	respond := func(version, healthz, keyID string) func(context.Context) (*kmsapi.StatusResponse, error) {
		return func(context.Context) (*kmsapi.StatusResponse, error) {
			return &kmsapi.StatusResponse{Version: version, Healthz: healthz, KeyId: keyID}, nil
		}
	}
	nothing := func(context.Context) (*kmsapi.StatusResponse, error) { return nil, nil }
	tests := []struct {
		name   string
		answer func(context.Context) (*kmsapi.StatusResponse, error)
		opts   []grpc.ServerOption
		status contract.Status
		detail string // a part of it
	}{
		{"healthy", good, nil, contract.StatusHealthy, ""},
		{"v2beta1", respond("v2beta1", "ok", "kek-1"), nil, contract.StatusHealthy, ""},
		{"key_id of 1024 bytes", respond("v2", "ok", strings.Repeat("k", 1024)), nil, contract.StatusHealthy, ""},
		{"key_id of 1025 bytes", respond("v2", "ok", strings.Repeat("k", 1025)), nil, contract.StatusUnhealthy, "key_id is 1025 bytes"},
		{"key_id empty", respond("v2", "ok", ""), nil, contract.StatusUnhealthy, "key_id is empty"},
		{"wrong version", respond("v1", "ok", "kek-1"), nil, contract.StatusUnhealthy, `version is "v1"`},
		{"healthz text", say("HSM is sealed"), nil, contract.StatusUnhealthy, "HSM is sealed"},
		{"healthz empty", say(""), nil, contract.StatusUnhealthy, "no readable text"},
		{"healthz with NUL", say("a\x00b"), nil, contract.StatusUnhealthy, "a b"},
		{"healthz of several lines with an URL", say("line 1\r\nhttps://kms.example/v1?x=\"y\"\n"), nil, contract.StatusUnhealthy, `line 1 https://kms.example/v1?x="y"`},
		{"healthz of 1 MiB", say(strings.Repeat("x", 1<<20)), nil, contract.StatusUnhealthy, contract.CutMark},
		{"answer over the limit", say(strings.Repeat("x", maxResponse)), nil, contract.StatusError, "ResourceExhausted: grpc: received message larger than max"},
		{"error", fail(codes.FailedPrecondition, "key disabled"), nil, contract.StatusError, "FailedPrecondition: key disabled"},
		{"error with hostile text", fail(codes.Internal, "a\nb\x1b[31m\x00\"}]"), nil, contract.StatusError, `Internal: a b [31m "}]`},
		{"error without text", fail(codes.PermissionDenied, ""), nil, contract.StatusError, "PermissionDenied:"},
		{"error with an unknown code", fail(codes.Code(99), "odd"), nil, contract.StatusError, "Code(99): odd"},
		{"nil response", nothing, nil, contract.StatusError, "nil response"},
		{"no bytes at all", good, []grpc.ServerOption{raw("")}, contract.StatusError, "nil response"},
		{"not a StatusResponse", good, []grpc.ServerOption{raw("\xff\xff\xff")}, contract.StatusError, "Internal: grpc: failed to unmarshal"},
		{"invalid UTF-8", good, []grpc.ServerOption{raw(field(1, "v2") + field(2, "\xff\xfe") + field(3, "kek-1"))}, contract.StatusError, "invalid UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := one(t, serve(t, &fake{status: tt.answer}, tt.opts...), ample)
			if e.Status != tt.status || !strings.Contains(e.Detail, tt.detail) {
				t.Fatalf("got %s %.200q, expected %s with %q", e.Status, e.Detail, tt.status, tt.detail)
			}
			if contract.SafeDetail(e.Detail) != e.Detail {
				t.Fatalf("detail %.200q is not safe", e.Detail)
			}
		})
	}
}

// TestEveryCode sees that each class of error arrives under its own name. OK cannot be an error; DeadlineExceeded and
// Unavailable are also what a hang and a dead socket look like, so the text has to tell them apart.
func TestEveryCode(t *testing.T) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		e := one(t, serve(t, &fake{status: fail(code, "by the plugin")}), ample)
		if want := code.String() + ": by the plugin"; e.Status != contract.StatusError || e.Detail != want {
			t.Errorf("%s %q, expected error %q", e.Status, e.Detail, want)
		}
	}
}

func TestAuthorityIsLocalhost(t *testing.T) {
	f := &fake{status: good}
	one(t, serve(t, f), ample)
	if got := f.authority.Load(); got != "[localhost]" {
		t.Errorf(":authority %v, expected localhost", got)
	}
}

func TestDeadSocketsFailAtOnceAndSayWhy(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "kms-1.sock")
	listener, err := net.Listen("unix", stale)
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	listener.Close()
	file := filepath.Join(dir, "kms-3.sock")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, socket, detail string }{
		{"stale socket", stale, "connection refused"},
		{"no file", filepath.Join(dir, "kms-2.sock"), "no such file or directory"},
		{"no socket", file, "connection refused"},
		{"name too long", filepath.Join(dir, strings.Repeat("d", 120), "kms-4.sock"), "invalid argument"},
		{"percent sign", filepath.Join(dir, "a%zz?b", "kms-5.sock"), "no such file or directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := one(t, Plugin{KeyID: "1", Socket: tt.socket}, ample)
			if e.Status != contract.StatusError || !strings.HasPrefix(e.Detail, "Unavailable: ") || !strings.Contains(e.Detail, tt.detail) {
				t.Errorf("%s %q, expected error Unavailable with %q", e.Status, e.Detail, tt.detail)
			}
		})
	}
}

func TestClosedConnectionsAreErrors(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "kms-2.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // accepts and hangs up, as a plugin that refuses connections does
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	e := one(t, Plugin{KeyID: "2", Socket: socket}, ample)
	listener.Close()
	<-done
	if e.Status != contract.StatusError || !strings.HasPrefix(e.Detail, "Unavailable: ") {
		t.Errorf("%s %q, expected error Unavailable", e.Status, e.Detail)
	}
}

func TestPluginOf(t *testing.T) {
	p, err := PluginOf("unix:///var/run/kmsplugin/kms-17.sock")
	if err != nil || p != (Plugin{KeyID: "17", Socket: "/var/run/kmsplugin/kms-17.sock"}) {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := PluginOf("tcp://localhost:1"); err == nil {
		t.Error("a TCP endpoint was accepted")
	}
}
