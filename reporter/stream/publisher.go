package stream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/kmsharness/kmsharness/contract"
	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/reporter/core"
)

// Options of a Publisher.
type Options struct {
	// Host is where aggregators are looked up and connected with.
	Host host.Host
	// Aggregators are host:port of the aggregator's replicas. A name stands for all its addresses, as that of a headless service does.
	Aggregators []string
	// TLS makes the configuration of a connection: it is called for each, so that a certificate that was renewed is used.
	TLS func() (*tls.Config, error)
	// KeyIDs of the reporter's plugins, the write key first.
	KeyIDs []string
	Timing contract.Timing
	Log    *slog.Logger
	Now    func() time.Time

	// Dial are further options of a connection, and Stood is called when a new stream stands; nil for (*Outbox).Stood. Reporters that are wrong on
	// purpose have others; see scenarios/mutants.
	Dial  []grpc.DialOption
	Stood func(*Outbox)
}

// Publisher sends the reports of one node, over a connection that carries nothing else (docs/contract.md, "Streaming"). Run keeps the stream up; Apply and Ready may be called meanwhile.
type Publisher struct {
	o      Options
	rounds Rounds

	mu     sync.Mutex
	outbox Outbox
	result chan error    // of the newest report; nil if nobody waits
	wake   chan struct{} // has one value when there may be something to send
	hangUp chan struct{} // has one value when the stream is to be given up
	stood  chan struct{} // closed once the first stream stood
	once   sync.Once
	why    error // why there is no stream; nil while there is one
}

// New makes a publisher. Nothing is sent before Run.
func New(o Options) *Publisher {
	if o.Stood == nil {
		o.Stood = (*Outbox).Stood
	}
	return &Publisher{o: o, outbox: Outbox{KeyIDs: o.KeyIDs, Timing: o.Timing}, wake: make(chan struct{}, 1), hangUp: make(chan struct{}, 1),
		stood: make(chan struct{}), why: errors.New("none was begun yet")}
}

// Configure changes the options. It is called before Run.
func (p *Publisher) Configure(change func(*Options)) { change(&p.o) }

// Ready returns once the first stream stands: nothing is probed before.
func (p *Publisher) Ready(ctx context.Context) error {
	select {
	case <-p.stood:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Apply carries out a core.Write. It returns at the write's deadline at the latest. A stream on which no acknowledgement came is not used again.
func (p *Publisher) Apply(ctx context.Context, write core.Action) error {
	ctx, cancel := context.WithTimeout(ctx, write.Until.Sub(p.o.Now())) // the wall clock may have been set
	defer cancel()
	result := make(chan error, 1)
	p.mu.Lock()
	p.outbox.Put(write)
	p.result = result
	p.mu.Unlock()
	signal(p.wake)
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.result = nil
	if p.why != nil {
		return fmt.Errorf("%w: %w", ErrNoStream, p.why)
	}
	signal(p.hangUp)
	return fmt.Errorf("send the report: no acknowledgement: %w", ctx.Err())
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run keeps a stream to the leader up until ctx ends.
func (p *Publisher) Run(ctx context.Context) {
	for ctx.Err() == nil {
		addresses, err := p.resolve(ctx)
		if i := p.rounds.Next(len(addresses)); i >= 0 {
			err = p.stream(ctx, addresses[i])
		} else if err == nil {
			err = errors.New("there is no aggregator")
		}
		p.mu.Lock()
		stoodBefore := p.why == nil
		p.why = err
		p.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		if stoodBefore {
			p.o.Log.Warn("the stream to the aggregator ended", "error", err)
		}
		timer := time.NewTimer(p.rounds.Failed(len(addresses)))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// resolve is the addresses of all replicas, sorted, so that going round reaches each.
func (p *Publisher) resolve(ctx context.Context) (addresses []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.o.Timing.DialTimeout())
	defer cancel()
	for _, a := range p.o.Aggregators {
		name, port, err := net.SplitHostPort(a)
		if err != nil {
			return nil, fmt.Errorf("aggregator %q: %w", a, err)
		}
		hosts, err := p.o.Host.Lookup(ctx, name)
		if err != nil {
			return addresses, fmt.Errorf("look up the aggregators: %w", err)
		}
		for _, h := range hosts {
			addresses = append(addresses, net.JoinHostPort(h, port))
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses), nil
}

// stream holds one stream until it ends, and returns why.
func (p *Publisher) stream(ctx context.Context, address string) error {
	config, err := p.o.TLS()
	if err != nil {
		return fmt.Errorf("credentials for the aggregator: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options := []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(config)), grpc.WithDisableServiceConfig(),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: time.Hour})} // a report that is not acknowledged ends the stream before
	if !p.o.Host.Alone() { // gRPC's own dialer otherwise
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return p.o.Host.Dial(ctx, "tcp", address) }))
	}
	conn, err := grpc.NewClient("passthrough:///"+address, append(options, p.o.Dial...)...)
	if err != nil {
		return fmt.Errorf("dial aggregator %s: %w", address, err)
	}
	defer conn.Close()
	opened := time.AfterFunc(p.o.Timing.DialTimeout(), cancel) // until the connection stands
	defer opened.Stop()
	stream, err := healthv1.NewHealthServiceClient(conn).Report(ctx)
	if err != nil {
		return fmt.Errorf("dial aggregator %s: %w", address, err)
	}
	opened.Stop()
	return fmt.Errorf("aggregator %s: %w", address, p.converse(ctx, cancel, stream))
}

// GreetingTimeout is how long a replica may take until it accepts a stream.
func GreetingTimeout(t contract.Timing) time.Duration { return t.WriteTimeout }

// converse serves a stream until it ends; cancel cancels its context.
func (p *Publisher) converse(ctx context.Context, cancel context.CancelFunc, stream grpc.BidiStreamingClient[healthv1.ReportRequest, healthv1.ReportResponse]) error {
	responses := make(chan *healthv1.ReportResponse)
	failed := make(chan error, 1)
	var receiving sync.WaitGroup
	defer receiving.Wait()
	defer cancel()
	receiving.Go(func() {
		for {
			r, err := stream.Recv()
			if err != nil {
				failed <- err
				return
			}
			select {
			case responses <- r:
			case <-ctx.Done():
				return
			}
		}
	})
	greeting := time.NewTimer(GreetingTimeout(p.o.Timing))
	defer greeting.Stop()
	for stands := false; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			return err
		case <-greeting.C:
			return errors.New("the stream was not accepted in time")
		case <-p.hangUp:
			if stands {
				return errors.New("a report was not acknowledged in time")
			}
		case r := <-responses:
			if !stands {
				stands = true
				greeting.Stop()
				p.stand()
			}
			p.receive(r)
		case <-p.wake:
		}
		if !stands {
			continue
		}
		if err := p.send(stream); err != nil {
			return err
		}
	}
}

// stand notes that a stream stands.
func (p *Publisher) stand() {
	p.rounds.Stood()
	select {
	case <-p.hangUp: // was meant for the one before
	default:
	}
	p.mu.Lock()
	p.why = nil
	p.o.Stood(&p.outbox)
	p.mu.Unlock()
	p.once.Do(func() { close(p.stood) })
	p.o.Log.Info("the stream to the aggregator stands")
}

func (p *Publisher) receive(r *healthv1.ReportResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch c := r.GetContent().(type) {
	case *healthv1.ReportResponse_Configuration:
		p.outbox.Configured(c.Configuration)
	case *healthv1.ReportResponse_Acknowledgement:
		if newest, err := p.outbox.Acknowledged(c.Acknowledgement); newest && p.result != nil {
			p.result <- err
			p.result = nil
		}
	}
}

func (p *Publisher) send(stream grpc.BidiStreamingClient[healthv1.ReportRequest, healthv1.ReportResponse]) error {
	p.mu.Lock()
	request, ok := p.outbox.Next(p.o.Now())
	p.mu.Unlock()
	if !ok {
		return nil
	}
	return stream.Send(request)
}
