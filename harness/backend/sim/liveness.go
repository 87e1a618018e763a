package sim

import "github.com/kmsharness/kmsharness/aggregator/reconcile"

// checkLiveness probes the API server, and closes the connection when no answer comes.
func (a *aggregator) checkLiveness() {
	began := a.w.k.Now()
	if wait := a.liveness.Due(began); wait > 0 {
		a.after(wait, a.checkLiveness)
		return
	}
	a.askWithin(reconcile.ProbeTimeout, request{verb: verbGet, key: a.co.key}, func(rep reply) {
		code := rep.code
		if rep.err != nil {
			code = 0
		}
		wait, redial := a.liveness.Probed(a.liveness.Alive(began, code))
		if c := a.c; redial && c != nil {
			a.c = nil
			c.fail(errReset)
		}
		a.after(wait, a.checkLiveness)
	})
}
