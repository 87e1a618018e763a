// Package reconcile is the aggregator between its decisions (aggregator/core) and an API server: what it reads before it
// writes, in which order it writes, what it does after a failure, when it reads again, and when it gives up a connection.
//
// Everything here is a function of values. A Reconciler names one Action at a time, and its driver carries it out:
//
//	action := r.Begin(now)
//	for action.Kind != reconcile.Done {
//		switch action.Kind {
//		case reconcile.Refresh: action = r.Refreshed(…everything read from the API server…)
//		case reconcile.Write:   action = r.Wrote(…the outcome of one request…)
//		}
//	}
//
// Package aggregator/controller drives it with client-go.
package reconcile
