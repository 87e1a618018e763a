package sim

import (
	"net/http"
	"time"
)

// Times of the real aggregator (aggregator/controller).
const (
	pulseMin     = time.Second
	pulseMax     = 5 * time.Second
	pulseTimeout = 2 * time.Second
	pulseRetry   = 100 * time.Millisecond
)

// pulse is an aggregator's question whether its API server still reads from etcd. Where no answer comes it dials anew.
func (a *aggregator) pulse() {
	a.askWithin(pulseTimeout, request{verb: verbGet, key: a.co.key}, func(rep reply) {
		if rep.err == nil && rep.code < http.StatusInternalServerError {
			a.after(min(max(a.w.timing.Interval/6, pulseMin), pulseMax), a.pulse)
			return
		}
		if c := a.c; c != nil {
			a.c = nil
			c.fail(errReset)
		}
		a.after(pulseRetry, a.pulse)
	})
}
