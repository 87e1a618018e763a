package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// pods are the API servers' pods of an environment as an operator handles them: what each is configured with, and what came of it.
// They outlive the operator, which may be killed at any time.
type pods struct {
	e        *environment
	operator *operatorProc
	pods     map[string]*pod
	seen     map[string]*pod // as the operator saw them last
	comes    map[string]bool // nodes that count, and whose pods are being made
	tries    int
	decided  *history.Decision
	lags     map[string]time.Duration // of what is rolled out, by node
	load     *switchLoad              // nil: nothing is switched
	writing  int                      // writes of loads that are under way
	logIns   operated.LogIns          // of the plugins
}

// pod is one of them. The zero value is an API server with clear text and nothing beside it.
type pod struct {
	plugins     map[uint64]config.Plugin // it is configured with
	waiting     map[uint64]core.Waiting  // that cannot start; one with other settings may run meanwhile
	sockets     []uint64                 // of its reporter
	files       []rolledOut              // what it was told, the newest last
	coming      rollingOut               // what is on its way
	inForce     rolledOut                // in the API server
	older       int                      // revision that it was rolled back to; 0: its own is that of its newest file
	incarnation int                      // of the process that was seen to have the newest file in force; 0: none was
}

// rolledOut is an encryption configuration that an API server was given.
type rolledOut struct {
	revision int
	config   encryption.List
}

// rollingOut is a revision that was to be rolled out, and since when.
type rollingOut struct {
	revision int
	since    time.Time
}

// operate has an operator switch the encryption, which begins with clear text.
func (e *environment) operate() {
	e.encryption, e.w.initially, e.w.named = encryption.Identity, encryption.Identity, map[string]string{}
	e.pods = &pods{e: e, pods: map[string]*pod{}, comes: map[string]bool{}}
	e.pods.operator = newOperatorProc(e)
	if e.kube == nil {
		e.w.keepCredentials()
	}
}

// begin starts the operator. Reporters are its business. The API servers, which began long before, look at their files each at its own time, so that
// there are moments in which only some have loaded a revision.
func (p *pods) begin() {
	w := p.e.w
	for _, n := range p.e.nodes() {
		n.server.envelope.primed = n.server.envelope.primed.Add(-w.k.Between(0, w.kms2.filePoll))
	}
	p.operator.start(func() {})
	p.askReadiness()
}

// finish ends the operator and the load of its switch.
func (p *pods) finish() error {
	if p == nil {
		return nil
	}
	p.load = nil
	err := p.e.within(startTimeout, func(done func(error)) { stop(&p.operator.proc, done) })
	for p.writing > 0 && err == nil {
		err = p.e.w.k.Sleep(migrationRetry)
	}
	p.e.data.busy = ""
	return err
}

// lifecycle is what the history's heading says of who switches the encryption.
func (p *pods) lifecycle() string {
	if p == nil {
		return ""
	}
	return history.LifecycleOperator
}

// of is the pod of a node.
func (p *pods) of(node string) *pod {
	if p.pods[node] == nil {
		clear := rolledOut{config: encryption.List{encryption.Clear()}}
		p.pods[node] = &pod{plugins: map[uint64]config.Plugin{}, waiting: map[uint64]core.Waiting{}, inForce: clear}
	}
	return p.pods[node]
}

// newest is what a pod was told last; false if it was told nothing.
func (p *pod) newest() (rolledOut, bool) {
	if len(p.files) == 0 {
		return rolledOut{}, false
	}
	return p.files[len(p.files)-1], true
}

// writer is the provider that every API server encrypts with; empty while they do not all have the same configuration, or while nobody has
// seen that they have.
func (p *pods) writer() string {
	writer := encryption.Clear().Name()
	for i, node := range slices.Sorted(maps.Keys(p.pods)) {
		one := p.pods[node]
		name := one.inForce.config.Writer().Name()
		if _, configured := one.newest(); configured && one.incarnation == 0 || i > 0 && name != writer {
			return ""
		}
		writer = name
	}
	return writer
}

// newest is the newest configuration that any API server was given.
func (p *pods) newest() rolledOut {
	var newest rolledOut
	for _, one := range p.pods {
		if f, configured := one.newest(); configured && f.revision >= newest.revision {
			newest = f
		}
	}
	return newest
}

// operators is the one there is.
func (p *pods) operators() ([]*proc, error) {
	if p == nil {
		return nil, errors.New("there is no operator: the topology has lifecycle direct")
	}
	return []*proc{&p.operator.proc}, nil
}

// startable leaves reporters out that were given no plugin yet: the operator starts them. The operator itself cannot stand still, as on real
// backends, where it is a part of the harness.
func (p *pods) startable(a *scenario.Process, targets []*proc) ([]*proc, error) {
	switch {
	case a.Target.Role == history.RoleOperator && (a.Do == scenario.VerbPause || a.Do == scenario.VerbResume):
		return nil, fmt.Errorf("%s: the operator is a part of the harness and cannot stand still: kill it", a.Do)
	case a.Target.Role == history.RoleOperator && a.Release != "":
		p.operator.older = a.Release == scenario.ReleaseOlder
		return targets, nil
	case a.Target.Role != history.RoleReporter || !starts(a):
		return targets, nil
	}
	return slices.DeleteFunc(targets, func(t *proc) bool { return p.pods[t.id.Node] == nil || len(p.pods[t.id.Node].sockets) == 0 }), nil
}
