package reconcile

import (
	"errors"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/aggregator/streams"
	"github.com/kmsharness/kmsharness/contract"
)

// State is everything that a decision rests on. An object that does not exist is nil. Nothing of it may be changed
// afterwards; the objects of an informer are not.
type State struct {
	CR              map[string]any       // the operator's CR
	ClusterOperator map[string]any       // that shows the union
	Config          map[string]any       // apiservers.config.openshift.io/cluster
	Health          map[string]any       // the EncryptionHealth, with reporters that stream
	Nodes           map[string]time.Time // that should report, each with its time of creation
}

type Config struct {
	// Operator whose reports are rolled up.
	Operator core.Operator
	// Interval (I) of the reporters. Staleness is derived from it.
	Interval time.Duration
	// AlwaysActive treats KMS as active without looking at State.Config.
	AlwaysActive bool
	// Union is how the conditions of the CR are united into those of the ClusterOperator.
	Union contract.Union
	// Latest is the newest known state, from caches and from what the API server returned.
	Latest func() State
	// Streams of reporters; nil if reporters write themselves.
	Streams *streams.Sessions
	// Decided, if set, receives each decision that is carried out and what it was made from.
	Decided func(core.Input, core.Decision)

	// Decide is what the aggregator wants done; nil for core.Step. This and the next two are replaced by aggregators that
	// are wrong on purpose; see scenarios/mutants.
	Decide func(core.Input, core.Memory) core.Decision
	// Unite decides anew what the ClusterOperator should say once the rollups are written or removed; nil for the rule of
	// (*Reconciler).unite.
	Unite func(core.Input, core.Decision) core.Decision
	// DeferUnion reports whether the union waits for the next pass because of what failed; nil for the rule of holdUnion.
	DeferUnion func(d core.Decision, rollups, removal error) bool
}

// Kind of an Action.
type Kind string

const (
	Refresh Kind = "refresh" // read everything from the API server itself, then call Refreshed
	Write   Kind = "write"   // send Action.Write, then call Wrote
	Done    Kind = "done"    // the pass is over; the next one begins on a change and after Action.Wake at the latest
)

// Action is the one thing to do next.
type Action struct {
	Kind  Kind
	Write Request
	// Err of a pass that is done is why something could not be carried out: it is tried again soon, see WriteRetryMin.
	Err error
	// Wrote of a pass that is done reports whether a rollup or the union was to be written.
	Wrote bool
	// NextWake of a pass that is done is that of the decision; see WakeAfter.
	NextWake time.Time
	// Ended are streams of a pass that is done which have to end, and Standing those which stand from now on.
	Ended, Standing []streams.ID
}

// Reconciler makes passes: read, decide, carry out. What it remembers from one pass to the next belongs to one term as
// leader, because what an earlier term knew may be long out of date. It is not safe for concurrent use.
type Reconciler struct {
	config Config
	memory core.Memory
	reader reader

	// Of the pass under way.
	in      core.Input
	d       core.Decision
	pending Target // of the request that was named last
	rollups error
	removal error
	union   error
	wrote   bool
	streams streaming
}

// New is a Reconciler for one term as leader.
func New(c Config) *Reconciler {
	r := &Reconciler{config: c}
	if c.Decide == nil {
		r.config.Decide = core.Step
	}
	if c.Unite == nil {
		r.config.Unite = r.unite
	}
	if c.DeferUnion == nil {
		r.config.DeferUnion = deferUnion
	}
	return r
}

// Begin begins a pass. The caches tell when to write, and never what: after an outage they are old, and from them every
// report would be called stale. So everything is read from the API server itself before a write.
func (r *Reconciler) Begin(now time.Time) Action {
	r.rollups, r.removal, r.union, r.wrote, r.pending = nil, nil, nil, false, ""
	r.d = core.Decision{Memory: r.memory}
	r.streams = streaming{sessions: r.config.Streams, operator: r.config.Operator}
	state := r.config.Latest()
	if state.CR == nil {
		return r.done() // its creation begins the next pass
	}
	r.in = r.input(state, now)
	r.d = r.config.Decide(r.in, r.memory)
	r.streams.look(state, r.in)
	if r.writes(state) || r.streams.changed {
		return Action{Kind: Refresh}
	}
	return r.carryOut()
}

// Refreshed goes on after a Refresh: state is what the API server returned, or err why it could not be read.
func (r *Reconciler) Refreshed(state State, now time.Time, err error) Action {
	if err != nil || state.CR == nil {
		r.d, r.rollups = core.Decision{Memory: r.memory}, err
		return r.done()
	}
	r.in = r.input(state, now)
	r.d = r.config.Decide(r.in, r.memory)
	r.streams.look(state, r.in)
	return r.carryOut()
}

// writes reports whether the decision asks for a write that can be made.
func (r *Reconciler) writes(s State) bool {
	return r.d.WriteRollups || !r.d.Remove.Empty() || r.d.WriteClusterOperator && s.ClusterOperator != nil
}

func (r *Reconciler) carryOut() Action {
	if r.config.Decided != nil {
		r.config.Decided(r.in, r.d)
	}
	return r.next()
}

// next is the request that follows the pending one, or the end of the pass. The rollups are written first: they carry
// the news. A removal that fails does not hold them up, and the ClusterOperator only gets what the CR already says: not
// that rollups are gone which could not be removed.
func (r *Reconciler) next() Action {
	switch r.pending {
	case "":
		r.pending = TargetRollups
		if r.d.WriteRollups {
			r.wrote = true
			return r.apply(r.d.Rollups)
		}
		fallthrough
	case TargetRollups:
		r.pending = TargetRemoval
		if action, needed := r.remove(); needed {
			return action
		}
		fallthrough
	case TargetRemoval:
		r.pending = TargetUnion
		if r.d.WriteClusterOperator && r.config.Latest().ClusterOperator != nil {
			r.wrote = true
			if !r.config.DeferUnion(r.d, r.rollups, r.removal) {
				return r.apply(r.d.ClusterOperator)
			}
		}
		fallthrough
	case TargetUnion:
		r.pending = TargetHealth
		if action, needed := r.streams.write(); needed {
			return action
		}
	}
	return r.done()
}

// Wrote goes on after a Write; err is nil if the API server carried it out.
func (r *Reconciler) Wrote(err error) Action {
	switch r.pending {
	case TargetRollups:
		r.rollups = err
		if err == nil {
			r.d = r.config.Unite(r.in, r.d)
		}
	case TargetRemoval:
		r.removed(err)
	case TargetUnion:
		r.union = err
	case TargetHealth:
		r.streams.wrote(err)
	}
	return r.next()
}

// remove is the request that carries out the decision's removal on the newest known version of the CR; false if there is
// nothing to remove, or nothing left.
func (r *Reconciler) remove() (Action, bool) {
	cr := r.config.Latest().CR
	if r.d.Remove.Empty() || cr == nil {
		return Action{}, false
	}
	request, err := removal(cr, r.config.Operator, r.d.Remove)
	if err != nil || request.Body == nil {
		r.removed(err)
		return Action{}, false
	}
	return Action{Kind: Write, Write: request}, true
}

func (r *Reconciler) removed(err error) {
	if r.removal = err; err == nil {
		r.d.Memory = r.d.Memory.Removed(r.d.Remove.Nodes...)
		r.d = r.config.Unite(r.in, r.d)
	}
}

func (r *Reconciler) apply(conditions []core.Condition) Action {
	request, err := applied(r.pending, r.config.Operator, conditions)
	if err != nil {
		return r.Wrote(err)
	}
	return Action{Kind: Write, Write: request}
}

func (r *Reconciler) done() Action {
	r.memory = r.d.Memory
	return Action{Kind: Done, Err: errors.Join(r.rollups, r.removal, r.union, r.streams.err), Wrote: r.wrote, NextWake: r.d.NextWake,
		Ended: r.streams.ended, Standing: r.streams.standing}
}

// unite decides anew from the CR as it stands: by then another condition of the CR may have changed, and the union of an
// old one with a new rollup, or without an old rollup, never stood there.
func (r *Reconciler) unite(in core.Input, d core.Decision) core.Decision {
	if cr := r.config.Latest().CR; cr != nil {
		in.Observed.Conditions = r.reader.observed(cr, r.config.Operator).Conditions
		now := r.config.Decide(in, d.Memory)
		d.ClusterOperator, d.WriteClusterOperator = now.ClusterOperator, now.WriteClusterOperator
	}
	return d
}

func deferUnion(d core.Decision, rollups, removal error) bool {
	return rollups != nil || removal != nil && len(d.Remove.Conditions) > 0
}

func (r *Reconciler) input(s State, now time.Time) core.Input {
	return core.Input{
		Now:             now,
		Interval:        r.config.Interval,
		Nodes:           s.Nodes,
		KMSActive:       r.config.AlwaysActive || active(s.Config),
		Observed:        r.reader.observed(s.CR, r.config.Operator),
		ClusterOperator: r.reader.conditionsOf(s.ClusterOperator),
		Union:           r.config.Union,
	}
}

// kmsEncryption is the value of spec.encryption.type that makes KMS active.
const kmsEncryption = "KMS"

// active reports whether a configuration names KMS; without a configuration there is no encryption.
func active(config map[string]any) bool {
	kind, _, _ := unstructured.NestedString(config, "spec", "encryption", "type")
	return kind == kmsEncryption
}

// reader reads each version of an object once.
type reader struct {
	core.Reader
	cr, operator map[string]any
	seen         core.Observed
	conditions   []core.Condition
}

func (r *reader) observed(cr map[string]any, op core.Operator) core.Observed {
	if !same(r.cr, cr) {
		r.cr, r.seen = cr, r.Read(cr, op)
	}
	return r.seen
}

func (r *reader) conditionsOf(operator map[string]any) []core.Condition {
	if !same(r.operator, operator) {
		r.operator, r.conditions = operator, nil
		if operator != nil {
			r.conditions = core.ReadConditions(operator)
		}
	}
	return r.conditions
}

// same reports whether two objects are one, not whether they are equal.
func same(a, b map[string]any) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}
