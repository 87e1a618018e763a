package server

import (
	"context"
	"errors"
	"time"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
	"github.com/kmsharness/kmsharness/fakeplugin/profile"
)

// Plugin answers the calls that no fault changes: plugin.Service, which has keys of its own, or upstream.Plugin, which stands in front of
// another plugin.
type Plugin interface {
	kmsapi.KeyManagementServiceServer
	// View is what the plugin knows of its remote key.
	View() plugin.View
	// KeyID is the key_id that an honest answer has for a KEK of the view; empty for one without an id.
	KeyID(keyring.KEK) string
	// Key is the name of the remote key; empty if the plugin does not know it.
	Key() string
	NoticeLag() time.Duration
}

// Profiled is a Plugin that can stand for a provider.
type Profiled interface {
	Profile() *profile.Profile
	SetProfile(*profile.Profile)
}

// Upstream is a Plugin in front of another one. It has one connection to the other plugin for each connection of a client, and both end
// together: a client meets a plugin that does not run as it would without the server in between.
type Upstream interface {
	Plugin
	// Endpoint is the endpoint of the other plugin.
	Endpoint() string
	// Connect makes the connection for one of a client's, and calls ended when that connection has ended.
	Connect(ended func()) (Connection, error)
}

// Connection is a connection to the plugin behind an Upstream.
type Connection interface {
	// Bind makes the calls of a context use the connection.
	Bind(context.Context) context.Context
	Close() error
}

// ErrGone is the error of a call whose Connection ended before the plugin behind it answered.
var ErrGone = errors.New("the connection to the plugin ended before it answered")

// profileOf is the provider that a plugin stands for; nil: none.
func profileOf(p Plugin) *profile.Profile {
	if of, ok := p.(Profiled); ok {
		return of.Profile()
	}
	return nil
}

// connect makes the connection to the plugin behind s for one of a client's, if there is a plugin behind s.
func (s *Server) connect(client *conn) error {
	up, ok := s.o.Plugin.(Upstream)
	if !ok {
		return nil
	}
	raw := client.Conn
	var err error
	client.upstream, err = up.Connect(func() { _ = raw.Close() }) // gRPC then closes the rest
	return err
}

// bound is the context of a call, which uses the connection that belongs to its own.
func bound(ctx context.Context) context.Context {
	if c := connOf(ctx); c != nil && c.upstream != nil {
		return c.upstream.Bind(ctx)
	}
	return ctx
}
