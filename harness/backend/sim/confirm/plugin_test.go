package confirm_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"
)

// plugin is a KMS v2 plugin that does what it is told, and notes its calls. Its ciphertext is its plaintext.
type plugin struct {
	kmsapi.UnimplementedKeyManagementServiceServer
	socket string
	server *grpc.Server

	mu sync.Mutex
	behaviour
	calls []call
}

type behaviour struct {
	healthz, keyID string
	encryptKeyID   string           // another one than Status says
	fails          map[string]error // by method
}

type call struct {
	method string
	at     time.Time
}

var errDisabled = status.Error(codes.FailedPrecondition, "failed precondition - key disabled")

func newPlugin(t testing.TB) *plugin {
	t.Helper()
	dir, err := os.MkdirTemp("", "kms") // a test's own directory has too long a name for a socket
	if err != nil {
		t.Fatal(err)
	}
	p := &plugin{socket: filepath.Join(dir, "kms.sock"), behaviour: behaviour{healthz: "ok", keyID: "1"}}
	t.Cleanup(func() { p.stop(); os.RemoveAll(dir) })
	return p
}

func (p *plugin) serve(t testing.TB) *plugin {
	t.Helper()
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	p.server = grpc.NewServer()
	kmsapi.RegisterKeyManagementServiceServer(p.server, p)
	go p.server.Serve(l)
	return p
}

func (p *plugin) stop() {
	if p.server != nil {
		p.server.Stop()
		p.server = nil
	}
}

// is changes what it does, and says when.
func (p *plugin) is(change func(*behaviour)) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.behaviour)
	return time.Now()
}

func (p *plugin) note(method string) (behaviour, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, call{method, time.Now()})
	return p.behaviour, p.fails[method]
}

// called is when a method was called since an instant.
func (p *plugin) called(method string, since time.Time) []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []time.Time
	for _, c := range p.calls {
		if c.method == method && !c.at.Before(since) {
			all = append(all, c.at)
		}
	}
	return slices.Clone(all)
}

func (p *plugin) Status(context.Context, *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
	b, err := p.note("Status")
	if err != nil {
		return nil, err
	}
	return &kmsapi.StatusResponse{Version: "v2", Healthz: b.healthz, KeyId: b.keyID}, nil
}

func (p *plugin) Encrypt(_ context.Context, r *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
	b, err := p.note("Encrypt")
	if err != nil {
		return nil, err
	}
	keyID := b.keyID
	if b.encryptKeyID != "" {
		keyID = b.encryptKeyID
	}
	return &kmsapi.EncryptResponse{Ciphertext: r.Plaintext, KeyId: keyID}, nil
}

func (p *plugin) Decrypt(_ context.Context, r *kmsapi.DecryptRequest) (*kmsapi.DecryptResponse, error) {
	if _, err := p.note("Decrypt"); err != nil {
		return nil, err
	}
	return &kmsapi.DecryptResponse{Plaintext: r.Ciphertext}, nil
}
