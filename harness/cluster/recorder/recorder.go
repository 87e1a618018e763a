package recorder

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
	"github.com/kmsharness/kmsharness/harness/record/audit"
	"github.com/kmsharness/kmsharness/harness/record/canary"
	"github.com/kmsharness/kmsharness/harness/record/envelope"
	"github.com/kmsharness/kmsharness/harness/record/journal"
	"github.com/kmsharness/kmsharness/harness/record/metrics"
	"github.com/kmsharness/kmsharness/harness/record/secrecy"
	"github.com/kmsharness/kmsharness/harness/record/tail"
	"github.com/kmsharness/kmsharness/harness/record/watch"
	"github.com/kmsharness/kmsharness/harness/starvation"
	"github.com/kmsharness/kmsharness/internal/poll"
)

const (
	// drainTimeout bounds the wait for recorders at the end, which normally takes milliseconds.
	drainTimeout = 20 * time.Second
	// tailEvery is how often files are read where reporters report every second. It bounds how late an expectation sees what a log says.
	tailEvery = 25 * time.Millisecond
)

// Recorder records one control plane, or what only a further API server of it has. It has everything that observes a scenario from outside: files and watches. What it records is what the checker
// judges by.
type Recorder struct {
	// Secrecy knows what must not be in a log.
	Secrecy *secrecy.Recorder

	controlPlane *cluster.ControlPlane
	nodes        *cluster.Nodes
	prefix       string // of the names of logs
	sink         *Gate
	to           record.Sink // sink, or what says of a further API server that it is about that
	files        *tail.Set
	watcher      *watch.Watcher
	audit        *audit.Recorder
	envelope     *envelope.Recorder
	journal      *journal.Recorder

	ctx    context.Context // of the watches
	cancel context.CancelFunc
	wg     *sync.WaitGroup

	mu       sync.Mutex
	markers  map[string]bool // user agents of marker requests, true when seen
	attempts map[string]bool // audit ids of the harness's own requests with credentials of the system under test
	canaries map[string]context.CancelFunc
	watches  map[string]context.CancelFunc // of containers, by node
	clients  []*cluster.Client
	closed   bool
}

// What says what is recorded of a control plane.
type What struct {
	ControlPlane *cluster.ControlPlane
	// Sink takes what is about kube-apiserver, its plugins and the objects that are watched.
	Sink record.Sink
	// Targets are the objects that are watched.
	Targets []watch.Target
}

// Start records from now on, through a gate.
func Start(what What, gate *Gate) (*Recorder, error) {
	traits, states := what.ControlPlane.Traits, watch.NewSequence(what.Sink)
	r := &Recorder{
		controlPlane: what.ControlPlane, nodes: what.ControlPlane.APIServers[0].Nodes, sink: gate, to: gate, wg: &sync.WaitGroup{}, files: tail.NewSet(), markers: map[string]bool{}, attempts: map[string]bool{}, canaries: map[string]context.CancelFunc{}, watches: map[string]context.CancelFunc{},
		watcher:  watch.New(states, clock.RealClock{}, what.Targets...),
		envelope: &envelope.Recorder{Sink: what.Sink, Now: traits.ClockOfLogs()},
		journal:  &journal.Recorder{Sink: what.Sink, Of: cluster.APIServerOfKey},
		Secrecy:  &secrecy.Recorder{Sink: what.Sink, Now: time.Now},
	}
	r.audit = &audit.Recorder{Sink: what.Sink, Identity: audit.SystemUnderTest, Resource: observed, Also: traced, Harness: r.attempted, Seen: r.seen, Streams: traits.Streaming}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if memory := traits.Memory; memory != nil {
		memory.Observe(states, what.Targets)
		r.files.Changed = memory.Changed
	}
	if err := r.follow(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.wg.Go(func() {
		ticker := time.NewTicker(max(tailEvery, r.controlPlane.Traits.Timing.Interval/40))
		defer ticker.Stop()
		r.files.Run(r.ctx, ticker.C)
	})
	r.wg.Go(r.flush)
	if r.controlPlane.Traits.Memory == nil {
		r.wg.Go(r.watchSockets)
	}
	if r.controlPlane.Traits.Host.Alone() { // nothing is starved where time waits
		r.wg.Go(r.watchStarvation)
	}
	return r, nil
}

// flush releases the events that were held back until the history had its run metadata, also if nothing new happens.
func (r *Recorder) flush() {
	if poll.Until(r.ctx, tailEvery, func() (bool, error) { return r.sink.headed.Load(), nil }) == nil {
		r.sink.Flush()
	}
}

// follow begins with what happens from now on; what the files hold belongs to earlier scenarios.
func (r *Recorder) follow() error {
	if err := r.files.Add(r.controlPlane.KMS.Journal, tail.FromEnd, r.searched(history.RoleRemoteKMS, r.journal.Operation)); err != nil {
		return err
	}
	for _, n := range r.nodes.List() {
		if err := r.FollowNode(n, tail.FromEnd); err != nil {
			return err
		}
	}
	return nil
}

// FollowNode records what a node's API server and plugins write, and watches through its API server.
func (r *Recorder) FollowNode(n *cluster.Node, from tail.From) error {
	name := n.Name
	if err := r.files.Add(n.AuditLog, from, r.searched("audit/"+name, func(line []byte) error { return r.audit.Line(name, line) })); err != nil {
		return err
	}
	if err := r.followLogs(n, from); err != nil {
		return err
	}
	r.watchContainers(n)
	t := r.controlPlane.Traits
	if t.Memory != nil { // which tells itself what is written
		return nil
	}
	config, err := r.controlPlane.Credentials.RESTConfig(cluster.RecorderUser, []string{"system:masters"}, n.URL)
	if err != nil {
		return err
	}
	c, err := cluster.NewClient(watch.Impatient(config))
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.clients = append(r.clients, c)
	r.mu.Unlock()
	r.watcher.Add(r.ctx, name, c)
	if t.RealNodes {
		r.canary(n, c)
	}
	return nil
}

// followLogs records what an API server and its plugins log on a node, and the metrics of its reporter.
func (r *Recorder) followLogs(n *cluster.Node, from tail.From) error {
	err := r.FollowPod(n, from)
	r.scrape(n)
	return err
}

func (r *Recorder) FollowPod(n *cluster.Node, from tail.From) error {
	err := r.files.Add(n.LogFile, from, r.searched(r.prefix+"log/"+n.Name, func(line []byte) error { return r.envelope.Line(n.Name, line) }))
	for _, g := range n.Plugins() {
		if err == nil {
			err = r.FollowPlugin(g, from)
		}
	}
	return err
}

func (r *Recorder) FollowPlugin(g *cluster.Plugin, from tail.From) error {
	return r.files.Add(g.Journal, from, r.searched(r.prefix+"journal/"+g.Node+"/"+g.KeyID, r.journal.Call))
}

// searched reads a log after each line was searched for bytes of objects and keys (NOTHING-SECRET).
func (r *Recorder) searched(log string, read tail.Line) tail.Line {
	return func(line []byte) error {
		r.Secrecy.Line(log, line)
		return read(line)
	}
}

// scrape reads the metrics of a node's reporter, twice an interval, until the run is over, so that a scenario may expect them within the detection bound.
// In virtual time, where none is late, once a second is enough. It goes on for a node that was removed: its reporter may linger.
func (r *Recorder) scrape(n *cluster.Node) {
	if n.ReporterPlace.MetricsURL == "" {
		return
	}
	every := r.controlPlane.Traits.Timing.Interval / 2
	if r.controlPlane.Traits.Memory != nil {
		every = max(every, time.Second)
	}
	scraper := &metrics.Recorder{Sink: r.to, Node: n.Name, URL: n.ReporterPlace.MetricsURL, Client: &http.Client{
		Timeout: every, Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: r.controlPlane.Traits.Host.Dial}}}
	r.wg.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		scraper.Run(r.ctx, ticker.C)
	})
}

// watchContainers records what happens to the containers of a node, where it has any, until the node goes or the run is over.
func (r *Recorder) watchContainers(n *cluster.Node) {
	if n.Containers == nil {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	r.mu.Lock()
	r.watches[n.Name] = cancel
	r.mu.Unlock()
	r.wg.Go(func() { n.Containers(ctx, r.sink) })
}

// Forget ends the watch through a node that goes away. Its files are followed to the end: their last lines tell why it
// went.
func (r *Recorder) Forget(name string) {
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

// Close ends everything and returns what could not be read of the files. It is safe to call twice.
func (r *Recorder) Close() error {
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
	r.Secrecy.Close()
	for _, c := range r.clients {
		c.Close()
	}
	r.sink.Close()
	return err
}

// Of is a part of the recorder: what only a further API server has.
func (r *Recorder) Of(a cluster.APIServer, sink record.Sink) (*Recorder, error) {
	p := &Recorder{
		controlPlane: r.controlPlane, nodes: a.Nodes, prefix: a.Name + "/", sink: r.sink, to: sink, wg: r.wg, files: r.files, Secrecy: r.Secrecy, watcher: r.watcher, ctx: r.ctx,
		envelope: &envelope.Recorder{Sink: sink, Now: r.envelope.Now}, journal: &journal.Recorder{Sink: sink},
	}
	for _, n := range p.nodes.List() {
		if err := p.followLogs(n, tail.FromEnd); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// SearchLog searches a log, from its beginning, for bytes of objects and keys.
func (r *Recorder) SearchLog(name, file string) error {
	return r.files.Add(file, tail.FromStart, r.searched(r.prefix+"log/"+name, func([]byte) error { return nil }))
}

// watchStarvation records when the harness, etcd and the API servers were runnable and got no processor
// (harness/starvation), until the recorder ends. It is the evidence for the status inconclusive: without it a busy
// machine looks like a slow reporter.
func (r *Recorder) watchStarvation() {
	w := starvation.Watch{}
	of := map[int]history.Process{0: {Role: history.RoleHarness}}
	w.Record = func(s starvation.Span) {
		p := of[s.PID]
		r.sink.Record(s.To, history.RoleHarness, &history.Starvation{Role: p.Role, Node: p.Node, From: s.From.Round(0).UTC(), To: s.To.Round(0).UTC()})
	}
	if r.controlPlane.Traits.RealNodes { // their ids in their containers are not those of this machine
		w.Processes = func() (pids []int) {
			for name, role := range map[string]string{"etcd": history.RoleEtcd, "kube-apiserver": history.RoleAPIServer} {
				for _, pid := range starvation.Named(name) {
					of[pid], pids = history.Process{Role: role}, append(pids, pid)
				}
			}
			return pids
		}
	} else {
		w.Processes = func() (pids []int) {
			for _, p := range r.controlPlane.Running() {
				if p.Role == history.RoleEtcd || p.Role == history.RoleAPIServer {
					of[p.PID], pids = p, append(pids, p.PID)
				}
			}
			return pids
		}
	}
	w.Run(r.ctx)
}

// Canaries write ten times an interval, and at most twice a second: six writes on three nodes, beside dozens of the cluster itself. One that takes
// as long as a reporter would wait is as good as none.
const canaryEvery = 500 * time.Millisecond

// canary records when the API server of a node cannot write. Where etcd has several members, an election stops all
// writes while every process runs.
func (r *Recorder) canary(n *cluster.Node, c *cluster.Client) {
	ctx, cancel := context.WithCancel(r.ctx)
	r.mu.Lock()
	r.canaries[n.Name] = cancel
	r.mu.Unlock()
	name := "kmsharness-canary-" + n.Name
	write := func(ctx context.Context) error {
		o := cluster.NewObject("v1", "ConfigMap", name, cluster.Object{"data": cluster.Object{"at": time.Now().UTC().Format(time.RFC3339Nano)}})
		_, err := c.Resource(cluster.ConfigMapObjects()).Namespace(cluster.DataNamespace).Apply(ctx, name, o, metav1.ApplyOptions{FieldManager: "kmsharness-canary", Force: true})
		return err
	}
	one := &canary.Canary{Sink: r.sink, Node: n.Name, Write: write, Timeout: r.controlPlane.Traits.Timing.WriteTimeout, Now: time.Now}
	r.wg.Go(func() {
		ticker := time.NewTicker(max(canaryEvery, r.controlPlane.Traits.Timing.Interval/10))
		defer ticker.Stop()
		one.Run(ctx, ticker.C)
	})
}

// observed reports whether writes to a resource ("plural.group") are recorded whichever client makes them.
func observed(resource string) bool {
	return strings.HasSuffix(resource, ".operator.openshift.io") || resource == "clusteroperators.config.openshift.io" ||
		resource == contract.HealthResource+"."+contract.HealthGroup
}

// traced reports whether a request is recorded because it may have been an envelope operation.
func traced(r *history.Request) bool {
	return r.Resource == "secrets" && r.Namespace == cluster.DataNamespace
}
