package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// retryEvery is how soon a broken watch is tried again. It is short, and there is no back-off: a watch that comes
	// back late is an observation that comes late, and refused connections on the same machine cost nothing.
	retryEvery = 100 * time.Millisecond
	// listTimeout bounds one list: a paused API server accepts connections and never answers.
	listTimeout = 5 * time.Second
	// settleTimeout bounds the wait for watches to deliver what a final list has shown to exist. They normally do
	// within milliseconds.
	settleTimeout = 15 * time.Second
	settlePoll    = 5 * time.Millisecond
)

// Watcher follows targets through several API servers at once, so that the loss of one costs nothing.
type Watcher struct {
	// RetryEvery is how soon a broken watch is tried again. It is set before Add.
	RetryEvery time.Duration

	sequence *Sequence
	clock    clock.WithTicker
	targets  []Target

	mu      sync.Mutex
	clients map[string]client // by the name of the API server
	wg      sync.WaitGroup
}

// New makes a watcher that follows nothing yet.
func New(sequence *Sequence, clk clock.WithTicker, targets ...Target) *Watcher {
	return &Watcher{RetryEvery: retryEvery, sequence: sequence, clock: clk, targets: targets, clients: map[string]client{}}
}

type client struct {
	dynamic.Interface
	cancel context.CancelFunc // of what follows through it
}

// Add starts to follow through the API server of that name, until ctx is done or Remove. An API server that is not
// there yet is tried until it is.
func (w *Watcher) Add(ctx context.Context, name string, api dynamic.Interface) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, followed := w.clients[name]; followed {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	w.clients[name] = client{api, cancel}
	for _, t := range w.targets {
		w.wg.Go(func() { w.follow(ctx, api.Resource(t.GVR), t) })
	}
}

// Remove ends following through one API server.
func (w *Watcher) Remove(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c, followed := w.clients[name]; followed {
		c.cancel()
	}
	delete(w.clients, name)
}

// Close ends everything and waits for it.
func (w *Watcher) Close() {
	for name := range w.all() {
		w.Remove(name)
	}
	w.wg.Wait()
}

func (w *Watcher) follow(ctx context.Context, client dynamic.ResourceInterface, t Target) {
	ticker := w.clock.NewTicker(w.RetryEvery)
	defer ticker.Stop()
	from := "" // list first
	for ctx.Err() == nil {
		if from == "" {
			from = w.list(ctx, client, t)
		}
		if from != "" {
			from = w.watch(ctx, client, t, from)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C():
		}
	}
}

// list offers the current state and gives the resourceVersion to watch from; empty if the API server did not answer.
func (w *Watcher) list(ctx context.Context, client dynamic.ResourceInterface, t Target) string {
	list, err := listOne(ctx, client, t)
	if err != nil {
		return ""
	}
	now := w.clock.Now()
	for i := range list.Items {
		w.sequence.Present(t, &list.Items[i], now)
	}
	if len(list.Items) == 0 {
		w.sequence.Absent(t, list.GetResourceVersion(), now)
	}
	return list.GetResourceVersion()
}

func listOne(ctx context.Context, client dynamic.ResourceInterface, t Target) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	return client.List(ctx, metav1.ListOptions{FieldSelector: selector(t)})
}

func selector(t Target) string { return fields.OneTermEqualSelector("metadata.name", t.Name).String() }

// watch offers what one watch delivers until it breaks, and gives the resourceVersion to go on from; empty if that
// is too old by now.
func (w *Watcher) watch(ctx context.Context, client dynamic.ResourceInterface, t Target, from string) string {
	events, err := client.Watch(ctx, metav1.ListOptions{FieldSelector: selector(t), ResourceVersion: from, AllowWatchBookmarks: true})
	if err != nil {
		return unlessExpired(err, from)
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return from
		case event, open := <-events.ResultChan():
			if !open {
				return from
			}
			if event.Type == watch.Error {
				return unlessExpired(apierrors.FromObject(event.Object), from)
			}
			u, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			from = u.GetResourceVersion()
			switch event.Type {
			case watch.Added, watch.Modified:
				w.sequence.Present(t, u, w.clock.Now())
			case watch.Deleted:
				w.sequence.Absent(t, from, w.clock.Now())
			}
		}
	}
}

func unlessExpired(err error, from string) string {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return ""
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code == http.StatusNotFound {
		return "" // the resource itself is not served yet
	}
	return from
}

// Settle reads the targets with a quorum through the first API server that answers, and waits until the watches have
// delivered at least that. After it, every state that existed when it was called is in the history.
func (w *Watcher) Settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	var errs []error
	for _, t := range w.targets {
		if err := w.settle(ctx, t); err != nil {
			errs = append(errs, fmt.Errorf("last states of %s/%s: %w", t.Resource(), t.Name, err))
		}
	}
	return errors.Join(append(errs, w.sequence.Problem())...)
}

func (w *Watcher) settle(ctx context.Context, t Target) error {
	err := errors.New("no API server to read them from")
	all := w.all()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var list *unstructured.UnstructuredList
		if list, err = listOne(ctx, all[name].Resource(t.GVR), t); err != nil {
			continue
		}
		if len(list.Items) == 0 {
			return nil
		}
		v, err := version(list.Items[0].GetResourceVersion())
		if err != nil {
			return err
		}
		if err := w.sequence.reached(ctx, t, v); err != nil {
			return fmt.Errorf("no watch delivered resourceVersion %d: %w", v, err)
		}
		return nil
	}
	return err
}

func (w *Watcher) all() map[string]client {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.clients)
}

// Impatient is c for a Watcher: what an API server says about when to come again is kept from client-go, which would
// sleep that long, in whole seconds and several times in a row. An API server that starts says it of every resource whose
// cache it has not filled yet, and what happens meanwhile would be observed late, or not at all. The Watcher tries again
// after Watcher.RetryEvery.
func Impatient(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return impatient{next} })
	return c
}

type impatient struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (i impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := i.next.RoundTrip(r)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}

// WrappedRoundTripper lets client-go find the transport below, whose idle connections it closes.
func (i impatient) WrappedRoundTripper() http.RoundTripper { return i.next }
