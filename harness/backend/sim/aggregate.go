package sim

import (
	"errors"
	"net/http"

	"github.com/kmsharness/kmsharness/aggregator/reconcile"
	"github.com/kmsharness/kmsharness/contract"
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/record/audit"
)

// latest is the newest known state.
func (a *aggregator) latest() reconcile.State {
	s := reconcile.State{CR: contentOf(a.cr.latest()), ClusterOperator: contentOf(a.co.latest()), Config: contentOf(a.config.latest()),
		Nodes: a.nodes.created()}
	if a.health != nil {
		if v := a.health.latest(); v != nil {
			s.Health = v.Object().Object
		}
	}
	return s
}

// contentOf is nil for an object that does not exist.
func contentOf(v *objects.Version) map[string]any {
	if v == nil {
		return nil
	}
	return v.Body()
}

// refresh asks the API server for everything at once.
func (a *aggregator) refresh(done func(reconcile.State, error)) {
	if a.w.hooks.TrustWatches {
		done(a.latest(), nil)
		return
	}
	var s reconcile.State
	left, failed := len(a.informers), error(nil)
	part := func(err error) {
		failed = errors.Join(failed, err)
		if left--; left == 0 {
			done(s, failed)
		}
	}
	content := func(v *objects.Version) map[string]any { return v.Body() }
	get := func(to *map[string]any, i *informer, content func(*objects.Version) map[string]any) {
		a.ask(request{verb: verbGet, key: i.key}, a.inTermReply(func(rep reply) {
			err := rep.problem()
			if rep.code == http.StatusNotFound {
				err = nil
			} else if err == nil {
				*to = content(rep.version)
				i.saw(rep.version)
			}
			part(err)
		}))
	}
	get(&s.CR, a.cr, content)
	get(&s.ClusterOperator, a.co, content)
	get(&s.Config, a.config, content)
	if a.health != nil {
		get(&s.Health, a.health, func(v *objects.Version) map[string]any { return v.Object().Object }) // it is updated, for which it needs its version
	}
	a.ask(request{verb: verbList, key: a.nodes.key}, a.inTermReply(func(rep reply) {
		err := rep.problem()
		if err == nil {
			s.Nodes = a.nodes.sawAll(rep)
		}
		part(err)
	}))
}

func (a *aggregator) inTermReply(f func(reply)) func(reply) {
	term := a.terms
	return func(rep reply) {
		if a.terms == term {
			f(rep)
		}
	}
}

// write sends one request of a pass.
func (a *aggregator) write(w reconcile.Request, done func(error)) {
	if w.Target == reconcile.TargetHealth {
		r := request{verb: verbUpdate, key: a.health.key, subresource: "status", manager: contract.AggregatorFieldManager, body: w.Body}
		a.ask(r, a.inTermReply(func(rep reply) {
			err := rep.problem()
			if err == nil {
				a.health.saw(rep.version)
			}
			done(err)
		}))
		return
	}
	on := a.cr
	if w.Target == reconcile.TargetUnion {
		on = a.co
	}
	r := request{verb: verbPatch, key: on.key, subresource: "status", manager: contract.AggregatorFieldManager, body: w.Body,
		contentType: audit.ContentTypeApply, force: true}
	if w.Target == reconcile.TargetRemoval {
		r.contentType, r.force = audit.ContentTypeJSONPatch, false
		if a.health != nil {
			a.reports.remove(func(removed func()) { a.send(r, on, func(err error) { removed(); done(err) }) })
			return
		}
	}
	a.send(r, on, done)
}

// send sends a write of an object, and remembers what the API server returned.
func (a *aggregator) send(r request, on *informer, done func(error)) {
	a.ask(r, a.inTermReply(func(rep reply) {
		err := rep.problem()
		if err == nil {
			on.saw(rep.version)
		}
		done(err)
	}))
}
