package encryption

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2"
	kmstypes "k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/v2"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/kms/pkg/service"

	"github.com/kmsharness/kmsharness/internal/host"
)

// plugins are those that an API server has connected with.
type plugins struct {
	host   host.Host
	lines  Lines
	around func(service.Service) service.Service // Around.Plugin

	mu  sync.Mutex
	all []*plugin // of the configurations that were loaded, and not closed since
}

// free is plugin.free of all plugins of a configuration, by its context. A zero until is for ever.
func (p *plugins) free(load context.Context) (busy <-chan struct{}, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for _, one := range p.all {
		if one.ctx != load {
			continue
		}
		b, u := one.free(now)
		if b != nil {
			return b, u
		}
		if until.IsZero() || u.Before(until) {
			until = u
		}
	}
	return nil, until
}

// unprimed is when a configuration is to be checked, for plugins that have not been healthy yet; zero: all have.
func (p *plugins) unprimed(load context.Context) (next time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for _, one := range p.all {
		if one.ctx != load {
			continue
		}
		if t := one.unprimed(now); !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	return next
}

// kube-apiserver has a mutex for each plugin, which it holds while it calls Status, and Encrypt after it. In virtual time a goroutine that waits for
// the mutex stops the clock. Callers are two probe loops and health checks. The loops begin after the first Status. The first loop probes once a minute,
// and every ten seconds after a failure. The second loop exists only if the first Status failed; it probes every ten seconds until the first success.
const (
	probeInterval = time.Minute
	retryInterval = 10 * time.Second
	// remembered is how long kube-apiserver answers a probe with the failure of the last one.
	remembered = 3 * time.Second
)

// plugin is the connection with a KMS plugin.
type plugin struct {
	lines   Lines
	ctx     context.Context // of the configuration: the same for all plugins of one
	client  kmsapi.KeyManagementServiceClient
	timeout time.Duration

	mu      sync.Mutex
	busy    chan struct{} // is closed when the call ends that is made with the mutex held; nil: none is
	version string        // of the first Status
	keyID   string        // of the last Status
	healthy bool          // kube-apiserver accepts the last Status
	sealed  string        // key_id of the data key that kube-apiserver has
	primed  time.Time     // when a probe first succeeded: there is one loop then
	loaded  time.Time     // when the loops began
	loops   [2]call       // the last calls of Status by loops
	holder  holder        // who called Status last
	until   time.Time     // when it has to be done; zero: nobody else comes
}

var _ service.Service = (*plugin)(nil)

// holder of the mutex.
type holder int

const (
	loading holder = iota // before the loops begin
	loop
	check // of health
)

// call is when a call began and ended.
type call struct{ began, ended time.Time }

// checking marks the context of a health check.
type checking struct{}

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
	one := &plugin{lines: p.lines, ctx: ctx, client: kmsapi.NewKeyManagementServiceClient(conn), timeout: timeout}
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
	if p.around != nil {
		return p.around(one), nil
	}
	return one, nil
}

// minConnectTimeout is gRPC's default, which has no name there.
const minConnectTimeout = 20 * time.Second

// Status implements service.Service. Where others may come for the mutex, it ends before: then there is no answer yet.
func (p *plugin) Status(ctx context.Context) (*service.StatusResponse, error) {
	ctx, end := p.begin(ctx, true)
	defer end()
	r, err := p.client.Status(ctx, &kmsapi.StatusRequest{})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := r.Version == kmsv2.KMSAPIVersionv2 || r.Version == kmsv2.KMSAPIVersionv2beta1
	if known && p.version == "" {
		p.version = r.Version
	}
	p.keyID, p.healthy = r.KeyId, r.Healthz == "ok" && known && r.Version == p.version
	p.prime()
	return &service.StatusResponse{Version: r.Version, Healthz: r.Healthz, KeyID: r.KeyId}, nil
}

func (p *plugin) Encrypt(ctx context.Context, uid string, data []byte) (*service.EncryptResponse, error) {
	p.lines.Log.called(uid, p.lines.To)
	ctx, end := p.begin(ctx, false)
	defer end()
	r, err := p.client.Encrypt(ctx, &kmsapi.EncryptRequest{Plaintext: data, Uid: uid})
	if err != nil {
		return nil, err
	}
	// kube-apiserver validates the same, with other data
	valid := kmsv2.ValidateEncryptedObject(&kmstypes.EncryptedObject{KeyID: r.KeyId, EncryptedDEKSource: r.Ciphertext, EncryptedData: []byte{0}, Annotations: r.Annotations,
		EncryptedDEKSourceType: kmstypes.EncryptedDEKSourceType_HKDF_SHA256_XNONCE_AES_GCM_SEED})
	p.mu.Lock()
	defer p.mu.Unlock()
	if valid == nil && r.KeyId == p.keyID {
		p.sealed = r.KeyId
		p.prime()
	}
	return &service.EncryptResponse{Ciphertext: r.Ciphertext, KeyID: r.KeyId, Annotations: r.Annotations}, nil
}

// prime notes the first probe that succeeds: the answers to Status are right, and there is a data key for its key_id. The plugin is locked.
func (p *plugin) prime() {
	if p.primed.IsZero() && p.healthy && p.sealed != "" && p.sealed == p.keyID {
		p.primed = time.Now()
	}
}

// begin notes a call that is made with the mutex held, and limits it; end notes its end.
func (p *plugin) begin(ctx context.Context, status bool) (limited context.Context, end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if status {
		p.take(ctx, now)
	}
	until := now.Add(p.timeout)
	if !p.until.IsZero() && p.until.Before(until) {
		until = p.until
	}
	busy := make(chan struct{})
	p.busy = busy
	limited, cancel := context.WithDeadline(ctx, until)
	return limited, func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		close(busy)
		p.busy = nil
		switch p.holder {
		case loading:
			p.loaded = time.Now()
		case loop:
			p.loops[1].ended = time.Now()
		}
	}
}

// take notes who has the mutex, and for how long. The plugin is locked.
func (p *plugin) take(ctx context.Context, now time.Time) {
	p.until = time.Time{}
	switch {
	case ctx.Value(checking{}) != nil:
		p.holder = check // its context ends in time
		return
	case p.loaded.IsZero():
		p.holder = loading
		return
	case !p.primed.IsZero():
	case now.Sub(p.loaded) < probeInterval:
		p.until = p.loaded.Add(probeInterval - 1)
	default: // the other loop called last
		p.until = p.loops[1].began.Add(retryInterval - 1)
	}
	p.holder = loop
	p.loops[0], p.loops[1] = p.loops[1], call{began: now}
}

// free says until when a health check may hold the mutex: a loop may come for it then. If the mutex is taken, busy ends with that.
func (p *plugin) free(now time.Time) (busy <-chan struct{}, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy != nil {
		return p.busy, now
	}
	// Any tick may have been one at which a loop began to probe more often, without a call: kube-apiserver answers a loop with the failure of a health
	// check of the last seconds.
	next := func(since time.Time) time.Time {
		return since.Add(max((now.Sub(since) + retryInterval - 1).Truncate(retryInterval), retryInterval))
	}
	until = next(p.loaded)
	for _, c := range p.loops {
		for _, t := range []time.Time{c.began, c.ended} {
			if !t.IsZero() && next(t).Before(until) {
				until = next(t)
			}
		}
	}
	return nil, until
}

// unprimed is when the failure of the next tick of both loops is no longer remembered; zero: the plugin is primed.
func (p *plugin) unprimed(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.primed.IsZero() {
		return time.Time{}
	}
	first := p.loaded.Add(retryInterval + remembered + 1)
	if now.Before(first) {
		return first
	}
	return first.Add((now.Sub(first)/retryInterval + 1) * retryInterval)
}

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
