package netfault

import (
	"fmt"
	"strings"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// chunksInTransit is how many reads (of at most 32 KiB) a direction may hold back, as with toxiproxy's own latency toxic.
const chunksInTransit = 1024

// toxic holds bytes back as its control says. It implements toxics.Toxic.
type toxic struct {
	pair      *pair
	direction Direction
}

// Pipe runs for the life of one direction of a connection.
func (t *toxic) Pipe(stub *toxics.ToxicStub) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case chunk := <-stub.Input:
			if chunk == nil {
				t.pair.control.pass(piece{direction: t.direction}, t.pair.dead) // on a cut link the end of a stream is lost like everything else
				stub.Close()
				return
			}
			t.pass(chunk, stub.Output)
		}
	}
}

// pass passes a chunk on, piece by piece.
func (t *toxic) pass(chunk *stream.StreamChunk, output chan<- *stream.StreamChunk) {
	for left := len(chunk.Data); left > 0; left = len(chunk.Data) {
		f, _ := t.pair.control.get()
		n := f.size(left)
		t.pair.control.pass(piece{t.direction, t.pair.opened, chunk.Timestamp, n, left}, t.pair.dead)
		output <- &stream.StreamChunk{Data: chunk.Data[:n], Timestamp: chunk.Timestamp}
		chunk.Data = chunk.Data[n:]
	}
}

// startPipeline starts toxiproxy's goroutines for both directions. They end when the connections do.
func startPipeline(p *pair) error {
	// None of these is shared: a collection is toxiproxy's list of toxics, here those of one connection. Without logger
	// and metrics it is silent.
	server := &toxiproxy.ApiServer{Metrics: toxiproxy.NewMetricsContainer(nil)}
	collection := toxiproxy.NewToxicCollection(&toxiproxy.Proxy{Name: "link"})
	for direction, of := range map[stream.Direction]Direction{stream.Upstream: Requests, stream.Downstream: Answers} {
		if err := addToxic(collection, direction, &toxic{p, of}); err != nil {
			return err
		}
	}
	client, upstream := &endpoint{conn: p.client, pair: p}, &endpoint{conn: p.upstream, pair: p}
	collection.StartLink(server, "upstream", client, upstream, stream.Upstream)
	collection.StartLink(server, "downstream", upstream, client, stream.Downstream)
	return nil
}

// addToxic adds a placeholder and puts ours in its place, because toxiproxy makes toxics from a global registry and
// from JSON, and this one needs its control.
func addToxic(collection *toxiproxy.ToxicCollection, direction stream.Direction, t *toxic) error {
	name := direction.String()
	placeholder := fmt.Sprintf(`{"name": %q, "type": "noop", "stream": %q, "toxicity": 1}`, name, name)
	wrapper, err := collection.AddToxicJson(strings.NewReader(placeholder))
	if err != nil {
		return fmt.Errorf("add a toxic: %w", err)
	}
	wrapper.Toxic, wrapper.BufferSize = t, chunksInTransit
	return nil
}
