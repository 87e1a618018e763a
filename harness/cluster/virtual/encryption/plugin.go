package encryption

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/kms/pkg/service"

	"github.com/kmsharness/kmsharness/internal/host"
)

// healthTTL is how long kube-apiserver's health check believes what a plugin has answered.
const healthTTL = 20 * time.Second

// plugins are those that an API server has connected with.
type plugins struct {
	host  host.Host
	lines Lines

	mu  sync.Mutex
	all []*plugin // of the configurations that were loaded, and not closed since
}

// ready is an error unless all plugins of a configuration are healthy. While a new one is loaded there are two.
func (p *plugins) ready(ctx context.Context) error {
	p.mu.Lock()
	all := append([]*plugin(nil), p.all...)
	p.mu.Unlock()
	var first error
	healthy, loads := map[context.Context]bool{}, []context.Context{}
	for _, one := range all {
		if _, known := healthy[one.ctx]; !known {
			healthy[one.ctx], loads = true, append(loads, one.ctx)
		}
		if err := one.healthy(ctx); err != nil {
			healthy[one.ctx] = false
			if first == nil {
				first = fmt.Errorf("kms plugin %s: %w", one.name, err)
			}
		}
	}
	for _, load := range loads {
		if healthy[load] {
			return nil
		}
	}
	return first
}

// await returns when all plugins of a configuration, by its context, are healthy.
func (p *plugins) await(ctx, of context.Context) error {
	p.mu.Lock()
	all := append([]*plugin(nil), p.all...)
	p.mu.Unlock()
	ticker := time.NewTicker(awaitPoll)
	defer ticker.Stop()
	for _, one := range all {
		if one.ctx != of {
			continue
		}
		for {
			err := one.healthy(ctx)
			if err == nil {
				break
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return fmt.Errorf("kms plugin %s: %w", one.name, err)
			}
		}
	}
	return nil
}

// awaitPoll is how often a plugin is asked that is not healthy.
const awaitPoll = 100 * time.Millisecond

// plugin is the connection with a KMS plugin.
type plugin struct {
	lines   Lines
	name    string
	ctx     context.Context // of the configuration: the same for all plugins of one
	client  kmsapi.KeyManagementServiceClient
	timeout time.Duration

	mu       sync.Mutex
	pending  chan struct{} // is closed when the Status that is under way has ended; nil: none is
	at       time.Time     // when the last one ended
	response *kmsapi.StatusResponse
	err      error
	answered bool // it has answered once
}

// connect is kmsv2.NewGRPCService with a dialer. Reconnections come without jitter, which gRPC takes from chance that no seed decides.
func connect(ctx context.Context, endpoint, name string, timeout time.Duration) (service.Service, error) {
	p, ok := ctx.Value(pluginsKey{}).(*plugins)
	if !ok {
		return nil, errors.New("connect with a KMS plugin: expected a context of package encryption")
	}
	path, ok := strings.CutPrefix(endpoint, "unix://")
	if !ok {
		return nil, fmt.Errorf("connect with the KMS plugin at %s: expected unix:///PATH", endpoint)
	}
	calm := backoff.DefaultConfig
	calm.Jitter = 0
	conn, err := grpc.NewClient("passthrough:///"+path, grpc.WithAuthority("localhost"), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)), grpc.WithIdleTimeout(0), grpc.WithConnectParams(grpc.ConnectParams{Backoff: calm, MinConnectTimeout: minConnectTimeout}),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return p.host.Dial(ctx, "unix", path) }))
	if err != nil {
		return nil, fmt.Errorf("connect with the KMS plugin at %s: %w", endpoint, err)
	}
	conn.Connect()
	one := &plugin{lines: p.lines, name: name, ctx: ctx, client: kmsapi.NewKeyManagementServiceClient(conn), timeout: timeout}
	p.mu.Lock()
	p.all = append(p.all, one)
	p.mu.Unlock()
	context.AfterFunc(ctx, func() {
		p.mu.Lock()
		for i := range p.all {
			if p.all[i] == one {
				p.all = append(p.all[:i:i], p.all[i+1:]...)
				break
			}
		}
		p.mu.Unlock()
		_ = conn.Close() // nothing is called any more
	})
	return one, nil
}

// minConnectTimeout is gRPC's default, which has no name there.
const minConnectTimeout = 20 * time.Second

// ask begins a Status unless one is under way, and returns what is closed when it has ended.
func (p *plugin) ask() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending != nil {
		return p.pending
	}
	over := make(chan struct{})
	p.pending = over
	go func() {
		ctx, cancel := context.WithTimeout(p.ctx, p.timeout)
		defer cancel()
		r, err := p.client.Status(ctx, &kmsapi.StatusRequest{})
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pending, p.at, p.response, p.err = nil, time.Now(), r, err
		p.answered = p.answered || err == nil
		close(over)
	}()
	return over
}

// Status implements service.Service. kube-apiserver calls it with a mutex held. One probe calls it for a plugin that has answered before; two do,
// at times of their own, for one that has not, and there it must not wait: it says at once that there is no answer yet, and the answer, when it
// comes, is that to the next call.
func (p *plugin) Status(ctx context.Context) (*service.StatusResponse, error) {
	p.mu.Lock()
	answered, come := p.answered, !p.at.IsZero() && p.err == nil && time.Since(p.at) < p.timeout
	p.mu.Unlock()
	if !come {
		over := p.ask()
		if answered {
			select {
			case <-over:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		} else if !endsNow(over) {
			return nil, errors.New("no answer yet")
		}
	}
	p.mu.Lock()
	r, err := p.response, p.err
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return &service.StatusResponse{Version: r.Version, Healthz: r.Healthz, KeyID: r.KeyId}, nil
}

// endsNow reports whether something ends without that time passes. What it takes is done by goroutines that can go on at once.
func endsNow(over <-chan struct{}) bool {
	for range 10_000 {
		select {
		case <-over:
			return true
		default:
			runtime.Gosched()
		}
	}
	return false
}

// healthy is what kube-apiserver's health check says of the plugin.
func (p *plugin) healthy(ctx context.Context) error {
	p.mu.Lock()
	pending, fresh := p.pending != nil, !p.at.IsZero() && time.Since(p.at) < healthTTL && p.err == nil
	p.mu.Unlock()
	if pending || !fresh {
		select {
		case <-p.ask():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil:
		return p.err
	case p.response.Healthz != "ok":
		return fmt.Errorf("healthz is %q, expected ok", p.response.Healthz)
	}
	return nil
}

// Encrypt implements service.Service.
func (p *plugin) Encrypt(ctx context.Context, uid string, data []byte) (*service.EncryptResponse, error) {
	p.lines.Log.called(uid, p.lines.To)
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	r, err := p.client.Encrypt(ctx, &kmsapi.EncryptRequest{Plaintext: data, Uid: uid})
	if err != nil {
		return nil, err
	}
	return &service.EncryptResponse{Ciphertext: r.Ciphertext, KeyID: r.KeyId, Annotations: r.Annotations}, nil
}

// Decrypt implements service.Service.
func (p *plugin) Decrypt(ctx context.Context, uid string, req *service.DecryptRequest) ([]byte, error) {
	p.lines.Log.called(uid, p.lines.To)
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	r, err := p.client.Decrypt(ctx, &kmsapi.DecryptRequest{Ciphertext: req.Ciphertext, Uid: uid, KeyId: req.KeyID, Annotations: req.Annotations})
	if err != nil {
		return nil, err
	}
	return r.Plaintext, nil
}
