package publish

import (
	"context"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/kmsharness/kmsharness/altsvc"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/host"
)

// client sends the two requests that a reporter makes.
type client struct {
	rest         *rest.RESTClient
	path         string
	alternatives *altsvc.Services // nil: none are used
}

// newClient turns config into a client that never queues, never repeats a write that may have been carried out, and keeps at most one
// connection to a server.
func newClient(config *rest.Config, alternatives *altsvc.Options, operator Operator) (*client, error) {
	made := &client{path: operator.path()}
	c := rest.CopyConfig(config)
	rereadToken(c)
	if alternatives == nil {
		// HTTP/1.1: there is one request at a time, and one that is given up closes its connection. Over HTTP/2 a
		// connection that went silent would be used again until its health check notices, after 45 s.
		c.TLSClientConfig.NextProtos = []string{"http/1.1"}
	}
	var err error
	if alternatives != nil {
		if made.alternatives, err = altsvc.Wrap(c, *alternatives); err != nil {
			return nil, fmt.Errorf("make a client for %s: %w", config.Host, err)
		}
	}
	if err = OwnTransport(c); err == nil {
		made.rest, err = restClient(c)
	}
	if err != nil {
		made.close()
		return nil, err
	}
	return made, nil
}

// restClient makes a client of a configuration, which it changes.
func restClient(c *rest.Config) (*rest.RESTClient, error) {
	c.QPS = -1 // the interval limits the rate; client-go's limiter would only hold a write back
	c.ContentType = runtime.ContentTypeJSON
	c.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme() // knows only metav1.Status, which errors come in
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.GroupVersion = &metav1.SchemeGroupVersion
	made, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", c.Host, err)
	}
	return made, nil
}

// Applier applies the reports of many nodes, for an aggregator that reporters stream to. It is safe for concurrent use.
type Applier struct{ client client }

// NewApplier makes one that reaches the API server as config has it. Nothing is sent yet.
func NewApplier(config *rest.Config, operator Operator) (*Applier, error) {
	made, err := restClient(rest.CopyConfig(config))
	if err != nil {
		return nil, err
	}
	return &Applier{client{rest: made, path: operator.path()}}, nil
}

// Apply sends a body (see Body) under a field manager. The API server is given until the deadline of ctx.
func (a *Applier) Apply(ctx context.Context, manager string, body []byte) error {
	return a.client.apply(ctx, manager, body)
}

// rereadToken lets the request after a 401 have the token that is in the file by then. Without it client-go sends the token that it has read last for up
// to 50 s, also one that has expired.
func rereadToken(c *rest.Config) {
	if c.BearerTokenFile == "" {
		return
	}
	c.Wrap(transport.ResettableTokenSourceWrapTransport(transport.NewCachedFileTokenSource(c.BearerTokenFile)))
	c.BearerToken, c.BearerTokenFile = "", ""
}

// Alternatives are the options of a reporter that fails over (connectivity altsvc). A write leaves time to be refused a connection by three
// API servers in turn. One that has gone silent is noticed before the next write, and one that was given up is tried again after an interval:
// it may be the only one that is left.
func Alternatives(h host.Host, t contract.Timing, static []string) altsvc.Options {
	return altsvc.Options{Static: static, LocalAddresses: h.AddressesFunc, DialTimeout: t.DialTimeout(), PingAfter: t.WriteTimeout / 2, PingTimeout: t.WriteTimeout / 4, Block: t.Interval}
}

// get reads the CR.
func (c *client) get(ctx context.Context) ([]byte, error) {
	b, err := c.rest.Get().AbsPath(c.path).MaxRetries(0).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", c.path, err)
	}
	return b, nil
}

// apply sends one forced Server-Side Apply to the status subresource. The API server is told the deadline, too, so
// that it does not carry out later what was given up here.
func (c *client) apply(ctx context.Context, manager string, body []byte) error {
	request := c.rest.Patch(types.ApplyYAMLPatchType).AbsPath(c.path, "status").MaxRetries(0).
		Param("fieldManager", manager).Param("force", "true").Body(body)
	if deadline, ok := ctx.Deadline(); ok {
		request = request.Timeout(max(time.Until(deadline), time.Millisecond))
	}
	response, err := request.Stream(ctx) // the answer is the whole CR with every reporter's entry: not kept
	if err != nil {
		return fmt.Errorf("apply to %s/status: %w", c.path, err)
	}
	defer response.Close()
	if _, err := io.Copy(io.Discard, response); err != nil {
		return fmt.Errorf("apply to %s/status: read the answer: %w", c.path, err)
	}
	return nil
}

// disconnect closes the connection, so that the next request begins with a new one.
func (c *client) disconnect() {
	if c.rest.Client != nil {
		utilnet.CloseIdleConnectionsFor(c.rest.Client.Transport)
	}
}

// close ends all connections.
func (c *client) close() {
	if c.alternatives != nil {
		c.alternatives.Close()
	}
	if c.rest != nil {
		c.disconnect()
	}
}
