package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// floodClients send to each API server at the same time: more than the priority level of reporters executes and queues for one of them
// (ci/manifests/flow-control.yaml) where the API server has the limits of requests that are its default.
const floodClients = 30

// flowSchemas are the names of flow schemas by UID.
type flowSchemas map[string]string

// flowSchemas reads them if an attempt is about one. The names are without the suffix of the installation.
func (st *statuses) flowSchemas(ctx context.Context, a *scenario.Attempt) (flowSchemas, error) {
	if a.Flow == "" {
		return nil, nil
	}
	c, err := st.e.controlPlane.Nodes().Admin()
	if err != nil {
		return nil, err
	}
	list, err := c.Resource(flowcontrolv1.SchemeGroupVersion.WithResource("flowschemas")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list flow schemas: %w", err)
	}
	names := flowSchemas{}
	for _, o := range list.Items {
		names[string(o.GetUID())] = strings.TrimSuffix(o.GetName(), st.e.traits.Suffix)
	}
	return names, nil
}

// judge is an error if a request was not classified as expected.
func (f flowSchemas) judge(a *scenario.Attempt, r apiRequest, answered answer) error {
	if got := cmp.Or(f[answered.flow], "none"); f != nil && got != a.Flow {
		return fmt.Errorf("%s %s as the reporter of %s: the API server classified it by flow schema %s, expected %s", r.method, r.path, a.As, got, a.Flow)
	}
	return nil
}

// flood sends a request from many clients to every API server. Each withholds its body, and gives up after a while: a request that was admitted
// occupies the API server meanwhile, costs little processor time, and changes nothing.
func (st *statuses) flood(ctx context.Context, a *scenario.Attempt, as *Node, r apiRequest, flows flowSchemas) error {
	ctx, cancel := context.WithTimeout(ctx, a.Flood.Value())
	defer cancel()
	// An API server refuses what waits for a quarter of its time-out. A report must not wait for so long, although the flood has taken all places.
	hold := st.e.traits.Timing.WriteTimeout / 5
	var limited atomic.Int64
	clients, during := errgroup.WithContext(ctx)
	for _, at := range st.e.serving() {
		c, err := st.clientOf(ctx, as, at)
		if err != nil {
			return err
		}
		defer c.Close()
		for range floodClients {
			clients.Go(func() error {
				for during.Err() == nil {
					answered, err := r.withhold(during, c, hold)
					switch {
					case errors.Is(err, context.DeadlineExceeded) || during.Err() != nil:
						continue
					case err != nil:
						return fmt.Errorf("flood of %s %s at the API server of %s: %w", r.method, r.path, at.Name, err)
					case answered.code != http.StatusTooManyRequests:
						return fmt.Errorf("flood of %s %s as the reporter of %s: answered %d without a body, expected 429: %s", r.method, r.path, a.As, answered.code, answered.text)
					}
					if err := flows.judge(a, r, answered); err != nil {
						return err
					}
					limited.Add(1)
					_ = pause(during, 5*hold) // until the flood ends
				}
				return nil
			})
		}
	}
	if err := clients.Wait(); err != nil {
		return err
	}
	if limited.Load() == 0 {
		return fmt.Errorf("flood of %s %s as the reporter of %s: no request of %d clients at each API server was answered with 429", r.method, r.path, a.As, floodClients)
	}
	return nil
}

// withhold sends a request without its body, and gives up after a while.
func (r apiRequest) withhold(ctx context.Context, c *Client, hold time.Duration) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, hold)
	defer cancel()
	return r.sendBody(ctx, c, withheld{ctx})
}

// withheld is a body that does not come.
type withheld struct{ ctx context.Context }

// Read implements io.Reader.
func (w withheld) Read([]byte) (int, error) {
	<-w.ctx.Done()
	return 0, w.ctx.Err()
}
