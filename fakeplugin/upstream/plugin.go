package upstream

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/server"
	"github.com/kmsharness/kmsharness/internal/host"
)

// Plugin passes calls on to the plugin at an endpoint. It is safe for concurrent use.
type Plugin struct {
	kmsapi.UnimplementedKeyManagementServiceServer
	host host.Host
	at   endpoint.Endpoint
	seen
}

var _ server.Upstream = (*Plugin)(nil)

// New is a plugin in front of the one at an endpoint, on a host. It connects when a client does.
func New(h host.Host, at endpoint.Endpoint) *Plugin {
	return &Plugin{host: h, at: at, seen: seen{clock: h.Clock()}}
}

// Endpoint implements server.Upstream.
func (p *Plugin) Endpoint() string { return p.at.String() }

// Key implements server.Plugin: no answer of a plugin names its remote key.
func (p *Plugin) Key() string { return "" }

// NoticeLag implements server.Plugin.
func (p *Plugin) NoticeLag() time.Duration { return 0 }

// Status implements the KMS v2 service.
func (p *Plugin) Status(ctx context.Context, req *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
	resp, err := forward(ctx, req, kmsapi.KeyManagementServiceClient.Status)
	p.observe(ctx, resp, err)
	return resp, err
}

// Encrypt implements the KMS v2 service.
func (p *Plugin) Encrypt(ctx context.Context, req *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
	return forward(ctx, req, kmsapi.KeyManagementServiceClient.Encrypt)
}

// Decrypt implements the KMS v2 service.
func (p *Plugin) Decrypt(ctx context.Context, req *kmsapi.DecryptRequest) (*kmsapi.DecryptResponse, error) {
	return forward(ctx, req, kmsapi.KeyManagementServiceClient.Decrypt)
}

// Notice asks the plugin for its Status by a connection of its own.
func (p *Plugin) Notice(ctx context.Context) error {
	c, err := p.Connect(func() {})
	if err != nil {
		return err
	}
	_, err = p.Status(c.Bind(ctx), &kmsapi.StatusRequest{})
	return errors.Join(err, c.Close())
}

type call[Req, Resp any] func(c kmsapi.KeyManagementServiceClient, ctx context.Context, req Req, options ...grpc.CallOption) (Resp, error)

// forward makes a call on the connection of ctx. The error is the plugin's, or server.ErrGone. Fields that this version of the API does
// not know stay in the messages.
func forward[Req, Resp any](ctx context.Context, req Req, do call[Req, Resp]) (resp Resp, err error) {
	c, ok := ctx.Value(bound{}).(*connection)
	if !ok {
		return resp, server.ErrGone
	}
	resp, err = do(c.plugin, outgoing(ctx), req)
	switch status.Code(err) {
	case codes.Unavailable, codes.Canceled: // of the connection, or of the call's context, which ends when the client's connection does
		if c.broken() {
			err = server.ErrGone
		}
	default:
	}
	return resp, err
}

// outgoing has the caller's metadata, except those that gRPC sets by itself.
func outgoing(ctx context.Context) context.Context {
	in, _ := metadata.FromIncomingContext(ctx)
	for key := range in {
		if key == "content-type" || key == "user-agent" || strings.HasPrefix(key, ":") || strings.HasPrefix(key, "grpc-") {
			delete(in, key)
		}
	}
	return metadata.NewOutgoingContext(ctx, in)
}
