package probe

import (
	"context"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/reporter/core"
)

// Plugin is one plugin instance of this node.
type Plugin struct {
	KeyID  string
	Socket string // path in the file system
}

// PluginOf reads an endpoint such as unix:///var/run/kmsplugin/kms-2.sock.
func PluginOf(endpoint string) (Plugin, error) {
	keyID, err := contract.KeyIDOfSocket(endpoint)
	if err != nil {
		return Plugin{}, err
	}
	return Plugin{KeyID: keyID, Socket: strings.TrimPrefix(endpoint, "unix://")}, nil
}

// Prober probes a fixed set of plugins. It is safe for concurrent use and keeps nothing between two probes.
type Prober struct {
	plugins []Plugin
	timeout time.Duration
	host    host.Host
	now     func() time.Time
}

// New probes the plugins of a host, each for at most timeout.
func New(h host.Host, plugins []Plugin, timeout time.Duration) *Prober {
	return &Prober{plugins: plugins, timeout: timeout, host: h, now: h.Clock().Now}
}

// All probes every plugin at the same time and returns the results in the plugins' order. It returns once the last
// one has answered or used up its deadline; none waits for another.
func (p *Prober) All(ctx context.Context) []core.Result {
	results := make([]core.Result, len(p.plugins))
	var wg sync.WaitGroup
	for i, plugin := range p.plugins {
		wg.Go(func() { results[i] = p.one(ctx, plugin) })
	}
	wg.Wait()
	return results
}

func (p *Prober) one(ctx context.Context, plugin Plugin) core.Result {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	r := core.Result{KeyID: plugin.KeyID, Started: p.now()}
	response, err := call(ctx, p.host, plugin.Socket)
	r.Duration = p.now().Sub(r.Started)
	switch {
	case err != nil:
		r.Failure = failure(err)
	case response != nil:
		r.Answer = &core.Answer{Version: response.GetVersion(), Healthz: response.GetHealthz(), KeyID: response.GetKeyId()}
	}
	return r
}

// call is one Status on a connection of its own.
func call(ctx context.Context, h host.Host, socket string) (*kmsapi.StatusResponse, error) {
	conn, err := dial(ctx, h, socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close() // also ends what is left of a call that was given up
	response, err := kmsapi.NewKeyManagementServiceClient(conn).Status(ctx, &kmsapi.StatusRequest{})
	return response, hang(ctx, err)
}

// hang names what came too late by its cause. On a machine so busy that the timer of the call fires after closeGrace, the
// kernel has cut the connection before, and gRPC says Unavailable of a plugin that hung.
func hang(ctx context.Context, err error) error {
	if deadline, ok := ctx.Deadline(); ok && status.Code(err) == codes.Unavailable && !time.Now().Before(deadline) {
		return status.Error(codes.DeadlineExceeded, "no answer within the deadline: "+status.Convert(err).Message())
	}
	return err
}

// failure keeps no more of a text than a report can hold, so that a hostile one is not carried around.
func failure(err error) *core.Failure {
	s, ok := status.FromError(err)
	if !ok {
		s = status.New(codes.Unknown, err.Error())
	}
	return &core.Failure{Code: s.Code().String(), Text: contract.SafeDetail(s.Message())}
}
