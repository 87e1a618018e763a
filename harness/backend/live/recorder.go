package live

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend/apiservers"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
	"github.com/kmsharness/kmsharness/harness/record/audit"
	"github.com/kmsharness/kmsharness/harness/record/envelope"
	"github.com/kmsharness/kmsharness/harness/record/journal"
	"github.com/kmsharness/kmsharness/harness/record/metrics"
	"github.com/kmsharness/kmsharness/harness/record/secrecy"
	"github.com/kmsharness/kmsharness/harness/record/tail"
	"github.com/kmsharness/kmsharness/harness/record/watch"
)

// recorder is everything that watches a scenario from outside: files and watches.
type recorder struct {
	controlPlane ControlPlane
	prefix       string // of the names of logs
	sink         *gate
	to           record.Sink // sink, or what says of a further API server that it is about that
	files        *tail.Set
	watcher      *watch.Watcher
	audit        *audit.Recorder
	envelope     *envelope.Recorder
	journal      *journal.Recorder
	secrecy      *secrecy.Recorder

	ctx    context.Context // of the watches
	cancel context.CancelFunc
	wg     *sync.WaitGroup

	mu       sync.Mutex
	markers  map[string]bool // user agents of marker requests, true when seen
	attempts map[string]bool // audit ids of the harness's own requests with credentials of the system under test
	canaries map[string]context.CancelFunc
	watches  map[string]context.CancelFunc // of containers, by node
	clients  []*Client
	closed   bool
}

func startRecorder(e *Environment, gate *gate) (*recorder, error) {
	r := &recorder{
		controlPlane: e.controlPlane, sink: gate, to: gate, wg: &sync.WaitGroup{}, files: tail.NewSet(), markers: map[string]bool{}, attempts: map[string]bool{}, canaries: map[string]context.CancelFunc{}, watches: map[string]context.CancelFunc{},
		watcher:  watch.New(watch.NewSequence(e.sink), clock.RealClock{}, e.targets()...),
		envelope: &envelope.Recorder{Sink: e.sink, Now: e.traits.clockOfLogs()},
		journal:  &journal.Recorder{Sink: e.sink, Of: apiservers.OfKey},
		secrecy:  &secrecy.Recorder{Sink: e.sink, Now: time.Now},
	}
	r.audit = &audit.Recorder{Sink: e.sink, Identity: audit.SystemUnderTest, Resource: observed, Also: traced, Harness: r.attempted, Seen: r.seen, Streams: e.traits.Streaming}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if err := r.follow(); err != nil {
		return nil, errors.Join(err, r.close())
	}
	r.wg.Go(func() {
		ticker := time.NewTicker(tailEvery)
		defer ticker.Stop()
		r.files.Run(r.ctx, ticker.C)
	})
	r.wg.Go(r.flush)
	r.wg.Go(r.watchStarvation)
	return r, nil
}

// flush lets events out that were held back until the history had its heading, also when nothing new happens.
func (r *recorder) flush() {
	ticker := time.NewTicker(tailEvery)
	defer ticker.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-ticker.C:
			r.sink.Flush()
		}
	}
}

// follow begins with what happens from now on; what the files hold belongs to earlier scenarios.
func (r *recorder) follow() error {
	if err := r.files.Add(r.controlPlane.KMS().Journal, tail.FromEnd, r.searched(history.RoleRemoteKMS, r.journal.Operation)); err != nil {
		return err
	}
	if l, ok := r.controlPlane.(RequestLogger); ok {
		for name, file := range l.RequestLogs() {
			if err := r.followRequests(name, file, tail.FromEnd); err != nil {
				return err
			}
		}
	}
	for _, n := range r.controlPlane.Nodes().List() {
		if err := r.followNode(n, tail.FromEnd); err != nil {
			return err
		}
	}
	return nil
}

// followNode records what a node's API server and plugins write, and watches through its API server.
func (r *recorder) followNode(n *Node, from tail.From) error {
	name := n.Name
	if err := r.followRequests(name, n.Server.AuditLog(), from); err != nil {
		return err
	}
	if err := r.files.Add(n.Server.LogFile(), from, r.searched("log/"+name, func(line []byte) error { return r.envelope.Line(name, line) })); err != nil {
		return err
	}
	for _, g := range n.Plugins() {
		if err := r.followPlugin(g, from); err != nil {
			return err
		}
	}
	config, err := r.controlPlane.RESTConfig(recorderUser, []string{"system:masters"}, n.Server.URL())
	if err != nil {
		return err
	}
	c, err := NewClient(watch.Impatient(config))
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.clients = append(r.clients, c)
	r.mu.Unlock()
	r.watcher.Add(r.ctx, name, c)
	r.watchContainers(n)
	r.scrape(n)
	if t := r.controlPlane.Traits(); t.RealNodes || t.Foreign() {
		r.canary(n, c)
	}
	return nil
}

// followRequests reads a log of the requests to the API server of a name.
func (r *recorder) followRequests(name, file string, from tail.From) error {
	return r.files.Add(file, from, r.searched("audit/"+name, func(line []byte) error { return r.audit.Line(name, line) }))
}

func (r *recorder) followPlugin(g *Plugin, from tail.From) error {
	return r.files.Add(g.Journal, from, r.searched(r.prefix+"journal/"+g.Node+"/"+g.KeyID, r.journal.Call))
}

// searched is what reads a log, after the line was searched for what must not be in it.
func (r *recorder) searched(log string, read tail.Line) tail.Line {
	return func(line []byte) error {
		r.secrecy.Line(log, line)
		return read(line)
	}
}

// scrape reads the metrics of a node's reporter, twice an interval, until the run is over. It goes on for a node that was
// removed: its reporter may linger.
func (r *recorder) scrape(n *Node) {
	if n.ReporterPlace.MetricsURL == "" {
		return
	}
	every := r.controlPlane.Traits().Timing.Interval / 2
	scraper := &metrics.Recorder{Sink: r.to, Node: n.Name, URL: n.ReporterPlace.MetricsURL, Client: &http.Client{
		Timeout: every, Transport: &http.Transport{DisableKeepAlives: true}}}
	r.wg.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		scraper.Run(r.ctx, ticker.C)
	})
}

// forget ends the watch through a node that goes away. Its files are read on: they hold its last words.
func (r *recorder) forget(name string) {
	r.watcher.Remove(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range []map[string]context.CancelFunc{r.canaries, r.watches} {
		if end := of[name]; end != nil {
			end()
		}
		delete(of, name)
	}
}

// close ends everything and says what could not be used of the files. It is safe to call twice.
func (r *recorder) close() error {
	r.mu.Lock()
	closed := r.closed
	r.closed = true
	r.mu.Unlock()
	if closed {
		return nil
	}
	r.cancel()
	r.watcher.Close()
	r.wg.Wait()
	err := r.files.Close()
	r.audit.Unanswered()
	r.secrecy.Close()
	for _, c := range r.clients {
		c.Close()
	}
	r.sink.close()
	return err
}
