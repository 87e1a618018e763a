package live

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/encryption"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// pods are the API servers' pods of an environment as an operator handles them. In OpenShift these are static pods: the
// operator writes revisions, an installer puts them on the disk of each node, and the kubelet runs them. The harness
// plays the installer and, where none runs, the kubelet. Pods outlive the operator, which may be killed at any time. No
// method takes the environment's lock while it has that of podStates.
type pods struct {
	podStates
	operatorProgram
	trials
	decisions decisions

	e       *apiServer
	cluster *operand.Cluster // around the operator
	roller  cluster.Roller   // nil: what is in a pod changes while the pod stays
	ctx     context.Context  // of what goes on beside the operator
	cancel  context.CancelFunc
	work    sync.WaitGroup
	logIns  *pluginLogIns
	load    *switchLoad
}

// podStates are what each pod is configured with, and what came of it.
type podStates struct {
	mu   sync.Mutex
	all  map[string]*pod          // by node
	lags map[string]time.Duration // of what is rolled out, by node
}

// pod is the state of one pod. The zero value is an API server with clear text and no plugins.
type pod struct {
	plugins    map[uint64]config.Plugin // it is configured with
	waiting    map[uint64]string        // that cannot start: why; one with other settings may run meanwhile
	sockets    []uint64                 // of its reporter
	number     int                      // of its revision, where it is replaced for each
	file       []byte                   // the newest; nil: none
	files      map[string]rolledOut     // by the hash of the file
	configured string                   // hash of the newest file; empty: none, or it is just being written
	telling    bool
	older      int        // revision that it was rolled back to; 0: its own is that of its newest file
	coming     rollingOut // what is on its way
	inForce    rolledOut  // in the API server
	asked      time.Time  // when it was asked last what it has in force
	answers    bool       // it answered then
	pid        int        // of the process that was seen to have the newest file in force; 0: none was
}

// rolledOut is an encryption configuration that an API server was given. It need not be in force: the API server loads
// it later, or never.
type rolledOut struct {
	revision  int // as the operator counts
	providers []string
}

// rollingOut is a revision that was to be rolled out, and since when.
type rollingOut struct {
	revision int
	since    time.Time
}

func newPods(e *apiServer) *pods {
	p := &pods{e: e, podStates: podStates{all: map[string]*pod{}}, operatorProgram: operatorProgram{e: e, own: e.opts.Operator.Command == ""}, roller: e.Roller, logIns: &pluginLogIns{e: e}}
	p.trials = trials{e: e, logIns: p.logIns}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.load = &switchLoad{e: e, ctx: p.ctx, work: &p.work}
	p.decisions = decisions{e: e, load: p.load}
	return p
}

// of is the pod of a node; p.mu is held.
func (p *podStates) of(node string) *pod {
	if p.all[node] == nil {
		clear := rolledOut{providers: []string{encryption.Clear().Name()}}
		p.all[node] = &pod{plugins: map[uint64]config.Plugin{}, waiting: map[uint64]string{}, files: map[string]rolledOut{}, inForce: clear}
	}
	return p.all[node]
}

// sockets are the names of the sockets that a node's reporter was given, in order.
func (p *podStates) sockets(node string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	if pod := p.all[node]; pod != nil { // a node may be gone by now
		for _, id := range pod.sockets {
			out = append(out, revision.SocketName(id))
		}
	}
	return out
}

// writer returns the provider that every API server encrypts with; empty while they do not all have the same
// configuration in force. Only then is it known by which key a write must be stored.
func (p *podStates) writer() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	writer := encryption.Clear().Name()
	for i, node := range slices.Sorted(maps.Keys(p.all)) {
		n := p.all[node]
		if n.telling || n.configured != "" && n.pid == 0 || i > 0 && n.inForce.providers[0] != writer {
			return ""
		}
		writer = n.inForce.providers[0]
	}
	return writer
}

// newest is the newest configuration that any API server was given.
func (p *podStates) newest() rolledOut {
	p.mu.Lock()
	defer p.mu.Unlock()
	var newest rolledOut
	for _, n := range p.all {
		if f := n.files[n.configured]; f.revision >= newest.revision {
			newest = f
		}
	}
	return newest
}

// lifecycle says in the run metadata whether an operator switches the encryption.
func (op *operatedParts) lifecycle() string {
	if op.e.pods != nil {
		return history.LifecycleOperator
	}
	return ""
}

// reported are the plugins that a node should report: without an operator, the same on all nodes.
func (op *operatedParts) reported(node string, all []string) []string {
	if op.e.pods == nil {
		return all
	}
	return op.e.pods.sockets(node)
}
