package sim

import (
	"net/http"
	"time"
)

// Times of the real aggregator (aggregator/controller).
const (
	pulseMin                     = time.Second
	pulseMax                     = 5 * time.Second
	pulseTimeout                 = 2 * time.Second
	pulseRetryMin, pulseRetryMax = 100 * time.Millisecond, 400 * time.Millisecond
)

// pulse is an aggregator's question whether its API server still reads from etcd, if nothing else has shown that for a period. Where no
// answer comes it dials anew.
func (a *aggregator) pulse() {
	period := min(max(a.w.timing.Interval/6, pulseMin), pulseMax)
	if silent := a.w.k.Now().Sub(a.heard); silent < period {
		a.after(period-silent, a.pulse)
		return
	}
	began := a.w.k.Now()
	a.askWithin(pulseTimeout, request{verb: verbGet, key: a.co.key}, func(rep reply) {
		if !a.throttled.IsZero() && !a.throttled.Before(began) || rep.err == nil && rep.code < http.StatusInternalServerError {
			a.pulses = 0
			a.after(period, a.pulse)
			return
		}
		if c := a.c; c != nil {
			a.c = nil
			c.fail(errReset)
		}
		a.pulses = min(max(2*a.pulses, pulseRetryMin), pulseRetryMax)
		a.retry(a.pulses, a.pulse)
	})
}
