package netfault

import (
	"fmt"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// chunksInTransit is how many reads (of at most 32 KiB) a direction may hold back, as with toxiproxy's own latency toxic.
const chunksInTransit = 1024

// toxic holds bytes back as its control says. It implements toxics.Toxic.
type toxic struct {
	control *control
	dead    <-chan struct{}
}

// Pipe runs for the life of one direction of a connection.
func (t *toxic) Pipe(stub *toxics.ToxicStub) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case chunk := <-stub.Input:
			if chunk == nil {
				t.control.pass(time.Time{}, t.dead) // on a cut link the end of a stream is lost like everything else
				stub.Close()
				return
			}
			t.control.pass(chunk.Timestamp, t.dead)
			stub.Output <- chunk
		}
	}
}

// startPipeline starts toxiproxy's goroutines for both directions. They end when the connections do.
func startPipeline(p *pair) error {
	// None of these is shared: a collection is toxiproxy's list of toxics, here those of one connection. Without logger
	// and metrics it is silent.
	server := &toxiproxy.ApiServer{Metrics: toxiproxy.NewMetricsContainer(nil)}
	collection := toxiproxy.NewToxicCollection(&toxiproxy.Proxy{Name: "link"})
	for _, direction := range []stream.Direction{stream.Upstream, stream.Downstream} {
		if err := addToxic(collection, direction, &toxic{control: p.control, dead: p.dead}); err != nil {
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
