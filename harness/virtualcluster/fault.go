package virtualcluster

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/apiserver"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/network"
)

// Fault is something that is wrong with a cluster from Inject to Release. Faults are comparable values: a test can list them, and draw from the list.
type Fault interface {
	// set puts the fault in force, or ends it.
	set(ctx context.Context, c *Cluster, on bool) error
	// place is what two faults cannot have at the same time; empty: the fault is an event, which is over at once.
	place() string
}

// Inject puts a fault in force. It returns when the fault has taken effect. It is an error if the fault names what is not there, or if another fault is
// in force at the same place.
func (c *Cluster) Inject(ctx context.Context, f Fault) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	if f.place() != "" {
		for _, other := range c.Faults() {
			if other.place() == f.place() {
				return fmt.Errorf("inject %T%+v: %T%+v is in force", f, f, other, other)
			}
		}
	}
	if err := f.set(ctx, c, true); err != nil {
		return fmt.Errorf("inject %T%+v: %w", f, f, err)
	}
	if f.place() != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.active = append(c.active, f)
	}
	return nil
}

// Release ends a fault. It is an error if the fault is not in force.
func (c *Cluster) Release(ctx context.Context, f Fault) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	if !slices.Contains(c.Faults(), f) {
		return fmt.Errorf("release %T%+v: it is not in force", f, f)
	}
	if err := f.set(ctx, c, false); err != nil {
		return fmt.Errorf("release %T%+v: %w", f, f, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active = slices.DeleteFunc(c.active, func(o Fault) bool { return o == f })
	return nil
}

// Heal ends all faults, in the order in which they were injected.
func (c *Cluster) Heal(ctx context.Context) error {
	for _, f := range c.Faults() {
		if err := c.Release(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// Faults are those in force, in the order in which they were injected.
func (c *Cluster) Faults() []Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.active)
}

// APIServerDown: an API server does not run. Its connections end at once; with Graceful, watches end, and other requests have 10 s. What else listens on its
// host ends with a kill, and Release starts the API server alone.
type APIServerDown struct {
	Name     string
	Graceful bool
}

func (f APIServerDown) place() string { return "run " + f.Name }

func (f APIServerDown) set(ctx context.Context, c *Cluster, on bool) error {
	s, err := c.server(f.Name)
	switch {
	case err != nil:
		return err
	case !on:
		return s.start(ctx)
	case f.Graceful:
		s.stop(ctx)
	default:
		s.kill()
	}
	return nil
}

// HostDown: the programs of a host reach nobody, and nobody reaches them, as if the host had lost power. Connections are reset, and listeners end: a
// program that serves must listen again after Release. Its sockets' files stay. For API servers, use APIServerDown.
type HostDown struct{ Name string }

func (f HostDown) place() string { return "run " + f.Name }

func (f HostDown) set(_ context.Context, c *Cluster, on bool) error {
	if err := c.knows(f.Name); err != nil {
		return err
	}
	if c.servers[f.Name] != nil || f.Name == LoadBalancer {
		return fmt.Errorf("host %q: expected one of the test's own", f.Name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if on {
		c.sockets[f.Name] = c.network.Isolate(f.Name)
		return nil
	}
	return c.network.Release(f.Name, c.sockets[f.Name])
}

// HostFrozen: what a host sends and is sent waits until Release. Connections stay open, as those of a program that is stopped.
type HostFrozen struct{ Name string }

func (f HostFrozen) place() string { return "freeze " + f.Name }

func (f HostFrozen) set(_ context.Context, c *Cluster, on bool) error {
	if err := c.knows(f.Name); err != nil {
		return err
	}
	c.network.Freeze(f.Name, on)
	return nil
}

// LinkFault is on what one host sends another. For both directions inject two. A link that is cut loses nothing: what was sent arrives after Release,
// unless TCP or HTTP/2 has given up before.
type LinkFault struct {
	From, To string
	network.Link
}

func (f LinkFault) place() string { return "link " + f.From + " to " + f.To }

func (f LinkFault) set(_ context.Context, c *Cluster, on bool) error {
	if err := c.knows(f.From, f.To); err != nil {
		return err
	}
	if f.Link == (network.Link{}) || f.Delay < 0 {
		return fmt.Errorf("expected Cut, Refused or a Delay above 0")
	}
	if !on {
		f.Link = network.Link{}
	}
	c.network.SetLink(f.From, f.To, f.Link)
	return nil
}

// ConnectionsReset is an event: the connections between two hosts are reset.
type ConnectionsReset struct{ A, B string }

func (ConnectionsReset) place() string { return "" }

func (f ConnectionsReset) set(_ context.Context, c *Cluster, _ bool) error {
	err := c.knows(f.A, f.B)
	if err == nil {
		c.network.Reset(f.A, f.B)
	}
	return err
}

// WatchesEnded is an event: the open watches of an API server end, as those that lasted long enough, or with Expired by 410 Gone, after which informers list
// again.
type WatchesEnded struct {
	APIServer string
	Expired   bool
}

func (WatchesEnded) place() string { return "" }

func (f WatchesEnded) set(_ context.Context, c *Cluster, _ bool) error {
	s, err := c.server(f.APIServer)
	if err == nil {
		s.watches.End(f.Expired)
	}
	return err
}

// WatchesDelayed: the watches of an API server show each change so much later. Lists and gets show it at once.
type WatchesDelayed struct {
	APIServer string
	By        time.Duration
}

func (f WatchesDelayed) place() string { return "watches " + f.APIServer }

func (f WatchesDelayed) set(_ context.Context, c *Cluster, on bool) error {
	s, err := c.server(f.APIServer)
	switch {
	case err != nil:
		return err
	case f.By <= 0:
		return fmt.Errorf("delay of %v: expected more than 0", f.By)
	case !on:
		f.By = 0
	}
	s.watches.Delay(f.By)
	return nil
}

// StorageDown: an API server does not reach etcd. Requests for objects wait, and fail after their time-out, of a minute if they name none.
// Watches are answered all the same.
type StorageDown struct{ APIServer string }

func (f StorageDown) place() string { return "storage " + f.APIServer }

func (f StorageDown) set(_ context.Context, c *Cluster, on bool) error {
	s, err := c.server(f.APIServer)
	if err == nil {
		s.setStorageDown(on)
	}
	return err
}

// Refusal: an API server answers requests with an error, before it does anything else. Watches that are open stay open.
type Refusal struct {
	APIServer string
	// User, Verb and Resource select requests; empty: all. A verb is that of RBAC, such as "list", and a resource the plural.
	User, Verb, Resource string
	// Code is an HTTP status from 400 to 599, such as 429, 500, 503 or 504.
	Code int
	// RetryAfter is sent to the client, in whole seconds; 0: nothing is.
	RetryAfter time.Duration
}

func (f Refusal) place() string {
	return fmt.Sprint("refusal ", f.APIServer, " ", f.User, " ", f.Verb, " ", f.Resource)
}

func (f Refusal) set(_ context.Context, c *Cluster, _ bool) error {
	if f.Code < http.StatusBadRequest || f.Code > 599 {
		return fmt.Errorf("code %d: expected 400 to 599", f.Code)
	}
	_, err := c.server(f.APIServer)
	return err
}

func (f Refusal) meets(server string, q *apiserver.Request) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	return q.IsResourceRequest && f.APIServer == server && is(f.User, q.User.GetName()) && is(f.Verb, q.Verb) && is(f.Resource, q.Resource)
}

func (f Refusal) err(q *apiserver.Request) error {
	return apierrors.NewGenericServerResponse(f.Code, q.Verb, q.Key().Resource.GroupResource(), q.Name, "a fault of the test", int(f.RetryAfter/time.Second), true)
}
