package sim

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
)

// elector competes for the lease, in the way of client-go's leader election.
type elector struct {
	a        *aggregator
	began    bool
	observed int64 // revision of the lease that was seen last
	at       time.Time
	renewed  time.Time        // when it was last known to be ours
	held     *objects.Version // as it was written last
}

func (e *elector) begin() {
	if !e.began {
		e.began = true
		e.try()
	}
}

// try acquires or renews, and again after a while. A leader whose lease is valid renews what it wrote last without a look, and looks
// if that fails.
func (e *elector) try() {
	if e.a.leading && e.held != nil && e.a.w.k.Now().Before(e.at.Add(e.a.w.election.lease)) {
		held := e.held
		e.held = nil
		e.put(request{verb: verbUpdate}, held, true)
		return
	}
	e.poll()
}

func (e *elector) poll() {
	e.a.ask(request{verb: verbGet, key: leaseKey()}, func(rep reply) {
		switch {
		case rep.code == http.StatusNotFound:
			e.put(request{verb: verbCreate}, nil, false)
		case rep.problem() != nil:
			e.next(false)
		default:
			e.consider(rep.version)
		}
	})
}

func (e *elector) consider(v *objects.Version) {
	now := e.a.w.k.Now()
	if v.Revision != e.observed {
		e.observed, e.at = v.Revision, now
	}
	holder, _, _ := unstructured.NestedString(v.Body(), "spec", "holderIdentity")
	if holder != "" && holder != e.identity() && now.Before(e.at.Add(e.a.w.election.lease)) {
		e.next(false)
		return
	}
	e.put(request{verb: verbUpdate}, v, false)
}

// put writes the lease, over a version that was read or, unseen, over the one that was written last.
func (e *elector) put(r request, old *objects.Version, unseen bool) {
	r.key, r.parsed = leaseKey(), e.lease(e.identity(), old)
	e.a.ask(r, func(rep reply) {
		ours := rep.problem() == nil
		if ours {
			e.observed, e.at, e.held = rep.version.Revision, e.a.w.k.Now(), rep.version
		} else if unseen {
			e.poll()
			return
		}
		e.next(ours)
	})
}

// next judges a try: a leader that could not renew for too long stops.
func (e *elector) next(ours bool) {
	now := e.a.w.k.Now()
	switch {
	case ours:
		e.renewed = now
		e.a.lead()
	case e.a.leading && now.Sub(e.renewed) >= e.a.w.election.renew:
		e.a.rest()
	}
	wait := e.a.w.election.retry
	if !e.a.leading {
		wait += e.a.w.k.Between(0, e.a.w.election.jitter())
	}
	e.a.after(wait, e.try)
	if e.a.leading {
		e.a.w.k.At(e.renewed.Add(e.a.w.election.renew), e.a.inTerm(e.expire))
	}
}

// expire stops a leader whose last renewal is too old, whatever it waits for.
func (e *elector) expire() {
	if e.a.leading && e.a.w.k.Now().Sub(e.renewed) >= e.a.w.election.renew {
		e.a.rest()
	}
}

// release gives the lease back, and then is called at the latest after a second.
func (e *elector) release(then func()) {
	over := false
	end := func() {
		if !over {
			over = true
			then()
		}
	}
	if !e.a.leading {
		end()
		return
	}
	e.a.rest()
	e.a.after(time.Second, end)
	e.a.ask(request{verb: verbGet, key: leaseKey()}, func(rep reply) {
		if rep.problem() != nil {
			end()
			return
		}
		e.a.ask(request{verb: verbUpdate, key: leaseKey(), parsed: e.lease("", rep.version)}, func(reply) { end() })
	})
}

func (e *elector) identity() string { return fmt.Sprintf("aggregator-%d", e.a.id.Instance) }

// lease is the body of a request: the object itself, since nobody records the text of it.
func (e *elector) lease(holder string, old *objects.Version) *parsed {
	u := newObject("coordination.k8s.io/v1", "Lease", leaseKey().Name, map[string]any{"spec": map[string]any{
		"holderIdentity": holder, "leaseDurationSeconds": int64(e.a.w.election.lease / time.Second), "renewTime": e.a.w.k.Now().UTC().Format(time.RFC3339Nano)}})
	u.SetNamespace(leaseKey().Namespace)
	if old != nil {
		u.SetResourceVersion(old.ResourceVersion())
	}
	return &parsed{done: true, object: u}
}
