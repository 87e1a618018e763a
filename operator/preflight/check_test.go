package preflight_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/preflight"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plugin is good, until a test changes an answer.
type plugin struct {
	kmsapi.UnimplementedKeyManagementServiceServer
	status  func() (*kmsapi.StatusResponse, error)
	encrypt func(*kmsapi.EncryptResponse)
	decrypt func(*kmsapi.DecryptResponse) error
}

func (p *plugin) Status(context.Context, *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
	if p.status != nil {
		return p.status()
	}
	return &kmsapi.StatusResponse{Version: "v2", Healthz: "ok", KeyId: "kek-1"}, nil
}

func (p *plugin) Encrypt(_ context.Context, r *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
	if r.GetUid() == "" {
		return nil, errors.New("uid is required")
	}
	answer := &kmsapi.EncryptResponse{Ciphertext: flip(r.GetPlaintext()), KeyId: "kek-1", Annotations: map[string][]byte{"a.example.com": []byte("x")}}
	if p.encrypt != nil {
		p.encrypt(answer)
	}
	return answer, nil
}

func (p *plugin) Decrypt(_ context.Context, r *kmsapi.DecryptRequest) (*kmsapi.DecryptResponse, error) {
	if r.GetUid() == "" || r.GetKeyId() != "kek-1" || string(r.GetAnnotations()["a.example.com"]) != "x" {
		return nil, errors.New("not as Encrypt answered")
	}
	answer := &kmsapi.DecryptResponse{Plaintext: flip(r.GetCiphertext())}
	if p.decrypt != nil {
		return answer, p.decrypt(answer)
	}
	return answer, nil
}

func flip(b []byte) []byte {
	out := bytes.Clone(b)
	for i := range out {
		out[i] ^= 0xff
	}
	return out
}

// serve gives a client of the plugin.
func serve(t *testing.T, p *plugin) kmsapi.KeyManagementServiceClient {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "kms-1.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	kmsapi.RegisterKeyManagementServiceServer(s, p)
	done := make(chan error, 1)
	go func() { done <- s.Serve(listener) }()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return kmsapi.NewKeyManagementServiceClient(conn)
}

func check(t *testing.T, p *plugin, limit time.Duration) core.Preflight {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return preflight.Check(ctx, serve(t, p), "abcdefgh", preflight.Options{Clock: clock.RealClock{}, Random: rand.Reader, UID: uuid.NewString, Pause: time.Millisecond, Call: ample})
}

// ample is more than a good plugin needs on a machine that is busy.
const ample = 10 * time.Second

func TestGood(t *testing.T) {
	got := check(t, &plugin{}, ample)
	if !got.OK || got.Hash != "abcdefgh" || got.KEK != "kek-1" || got.Message != "" || got.At.IsZero() {
		t.Errorf("%+v", got)
	}
}

// TestLate: a plugin that is well only after a while is well.
func TestLate(t *testing.T) {
	calls := 0
	p := &plugin{status: func() (*kmsapi.StatusResponse, error) {
		if calls++; calls < 4 {
			return nil, errors.New("no session yet")
		}
		return &kmsapi.StatusResponse{Version: "v2beta1", Healthz: "ok", KeyId: "kek-1"}, nil
	}}
	if got := check(t, p, ample); !got.OK || calls < 4 {
		t.Errorf("%+v after %d calls", got, calls)
	}
}

// TestBad: each wrong answer is found, and told in one line.
func TestBad(t *testing.T) {
	answers := func(r *kmsapi.StatusResponse) func() (*kmsapi.StatusResponse, error) {
		return func() (*kmsapi.StatusResponse, error) { return r, nil }
	}
	for want, p := range map[string]*plugin{
		"status: not ok until the end of the check: healthz is \"no\"": {status: answers(&kmsapi.StatusResponse{Version: "v2", Healthz: "no", KeyId: "k"})},
		"version is \"v1\"":                {status: answers(&kmsapi.StatusResponse{Version: "v1", Healthz: "ok", KeyId: "k"})},
		"key_id has 0 bytes":               {status: answers(&kmsapi.StatusResponse{Version: "v2", Healthz: "ok"})},
		"key_id has 1025":                  {status: answers(&kmsapi.StatusResponse{Version: "v2", Healthz: "ok", KeyId: strings.Repeat("k", 1025)})},
		"permission denied":                {status: func() (*kmsapi.StatusResponse, error) { return nil, errors.New("permission\ndenied") }},
		"encrypt: key_id is \"kek-2\"":     {encrypt: func(r *kmsapi.EncryptResponse) { r.KeyId = "kek-2" }},
		"encrypt: the ciphertext has 0":    {encrypt: func(r *kmsapi.EncryptResponse) { r.Ciphertext = nil }},
		"encrypt: the ciphertext has 1025": {encrypt: func(r *kmsapi.EncryptResponse) { r.Ciphertext = make([]byte, 1025) }},
		"encrypt: the ciphertext is the":   {encrypt: func(r *kmsapi.EncryptResponse) { r.Ciphertext = flip(r.Ciphertext) }},
		"encrypt: annotation \"nodot\"":    {encrypt: func(r *kmsapi.EncryptResponse) { r.Annotations["nodot"] = nil }},
		"encrypt: the annotations have 32": {encrypt: func(r *kmsapi.EncryptResponse) { r.Annotations["b.example.com"] = make([]byte, 32<<10) }},
		"decrypt: what comes back is not":  {decrypt: func(r *kmsapi.DecryptResponse) error { r.Plaintext = []byte("other"); return nil }},
		"decrypt: rpc error":               {decrypt: func(*kmsapi.DecryptResponse) error { return errors.New("not allowed") }},
	} {
		got := check(t, p, 300*time.Millisecond)
		kek := "kek-1" // that Status has named
		if strings.Contains(want, "key_id has") || strings.Contains(want, "permission") {
			kek = ""
		}
		if p.status != nil && kek != "" {
			kek = "k"
		}
		if got.OK || got.KEK != kek || got.Hash != "abcdefgh" || strings.Contains(got.Message, "\n") || !strings.Contains(got.Message, want) {
			t.Errorf("%+v, expected %q", got, want)
		}
	}
}
