package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/internal/host"
)

// wire is a connection to the plugin on which a check writes its own bytes. Reads and writes end at the deadline of a call.
type wire struct{ net.Conn }

// hangUp bounds the wait for the plugin's end of a connection that a check closes.
const hangUp = 500 * time.Millisecond

func dialWire(ctx context.Context, p *Plugin) (*wire, error) {
	c, err := p.at.Dial(ctx, host.Host{})
	if err != nil {
		return nil, err
	}
	w := &wire{c}
	if err := w.extend(p); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return w, nil
}

// extend moves the deadline: the check may use the connection for the time of a further call.
func (w *wire) extend(p *Plugin) error { return w.SetDeadline(time.Now().Add(p.timing.Call)) }

// end closes the connection in order: it reads what the plugin still sends, so that the plugin sees an end and no reset.
func (w *wire) end() {
	if half, ok := w.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = w.SetReadDeadline(time.Now().Add(hangUp))
		_, _ = io.Copy(io.Discard, w.Conn)
	}
	_ = w.Close()
}

// frames is an HTTP/2 connection on which a check writes its own frames.
type frames struct {
	*wire
	framer *http2.Framer
	next   uint32 // the next stream
}

// dialFrames opens an HTTP/2 connection.
func dialFrames(ctx context.Context, p *Plugin) (*frames, error) {
	w, err := dialWire(ctx, p)
	if err != nil {
		return nil, err
	}
	f := &frames{wire: w, framer: http2.NewFramer(w, w), next: 1}
	if _, err := io.WriteString(w, http2.ClientPreface); err != nil {
		return nil, errors.Join(fmt.Errorf("write the HTTP/2 preface: %w", err), w.Close())
	}
	if err := f.framer.WriteSettings(); err != nil {
		return nil, errors.Join(fmt.Errorf("write the HTTP/2 settings: %w", err), w.Close())
	}
	return f, nil
}

// headers opens a stream with the headers of a gRPC call, and returns its id. No message follows.
func (f *frames) headers(method string, more ...hpack.HeaderField) (uint32, error) {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block) // one for each stream: it only uses the static table, as the table of the connection is empty
	e.SetMaxDynamicTableSizeLimit(0)
	for _, h := range append([]hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: method}, {Name: ":authority", Value: authority},
		{Name: "content-type", Value: "application/grpc"}, {Name: "te", Value: "trailers"},
	}, more...) {
		if err := e.WriteField(h); err != nil {
			return 0, err
		}
	}
	id := f.next
	f.next += 2
	return id, f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true})
}

// status sends a complete call of Status, and returns its stream.
func (f *frames) status(more ...hpack.HeaderField) (uint32, error) {
	id, err := f.headers(kmsapi.KeyManagementService_Status_FullMethodName, more...)
	if err != nil {
		return 0, err
	}
	return id, f.framer.WriteData(id, true, emptyMessage())
}

// call calls Status and waits for the end of the call.
func (f *frames) call() error {
	id, err := f.status()
	if err != nil {
		return err
	}
	return f.await(ended(id))
}

// emptyMessage is a StatusRequest as gRPC sends it: not compressed, 0 bytes.
func emptyMessage() []byte { return []byte{0, 0, 0, 0, 0} }

// await reads frames until match returns true. It acknowledges settings. The end of the connection is an error.
func (f *frames) await(match func(http2.Frame) bool) error {
	for {
		frame, err := f.framer.ReadFrame()
		if err != nil {
			return err
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				if err := f.framer.WriteSettingsAck(); err != nil {
					return err
				}
			}
		case *http2.GoAwayFrame:
			return fmt.Errorf("the plugin closes the connection: GOAWAY %v %s", frame.ErrCode, frame.DebugData())
		}
		if match(frame) {
			return nil
		}
	}
}

// ended reports whether a frame ends a stream.
func ended(stream uint32) func(http2.Frame) bool {
	return func(frame http2.Frame) bool {
		h := frame.Header()
		return h.StreamID == stream && (h.Type == http2.FrameRSTStream || (h.Type == http2.FrameHeaders && h.Flags.Has(http2.FlagHeadersEndStream)))
	}
}

// another is a client with a connection of its own, which the caller closes.
func (c *client) another(options ...grpc.DialOption) (*client, error) {
	other := *c
	var err error
	other.conn, err = c.Dial(options...)
	return &other, err
}

// statusOnNew calls Status on a new connection.
func (c *client) statusOnNew(ctx context.Context, options ...grpc.DialOption) (*kmsapi.StatusResponse, error) {
	other, err := c.another(options...)
	if err != nil {
		return nil, err
	}
	defer other.conn.Close()
	return other.Status(ctx)
}

// othersServed calls Status on the connection that the checks share and on a new one. It is a Finding if one of them is not answered.
func othersServed(ctx context.Context, p *Plugin, when string) error {
	need(p.answer(ctx, "Status on another connection "+when))
	if _, err := p.statusOnNew(ctx); err != nil {
		return found("Status on a new connection "+when, err, "a response")
	}
	return nil
}

// ping sends a PING and waits for its acknowledgement.
func (f *frames) ping(data [8]byte) error {
	if err := f.framer.WritePing(false, data); err != nil {
		return err
	}
	return f.await(func(frame http2.Frame) bool {
		ack, ok := frame.(*http2.PingFrame)
		return ok && ack.IsAck() && ack.Data == data
	})
}
