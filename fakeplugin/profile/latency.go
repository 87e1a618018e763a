package profile

import "time"

// Latency is how long a method takes, by quantiles: what is between two of them is drawn evenly.
type Latency struct {
	Least, Half, Most99, Most time.Duration // of no call, half of them, 99 of 100, all
}

// Of is the latency at a quantile, from 0 to 1. The zero Latency is none at all.
func (l Latency) Of(q float64) time.Duration {
	switch {
	case q < 0.5:
		return between(l.Least, l.Half, q/0.5)
	case q < 0.99:
		return between(l.Half, l.Most99, (q-0.5)/0.49)
	default:
		return between(l.Most99, l.Most, (q-0.99)/0.01)
	}
}

func between(a, b time.Duration, share float64) time.Duration {
	return a + time.Duration(min(1, share)*float64(b-a))
}
