// Package core decides what a reporter does: when it probes, what an answer of a plugin means, what it writes, and
// what it drops. Everything is a function of values: there is no clock, network, goroutine or random number in here.
// Instants and jitter come in with an Event, and what is to be done goes out as one Action.
//
//	ev := core.Event{Kind: core.Timer, Now: now, Jitter: jitter}
//	for {
//		state, action = core.Step(cfg, state, ev)
//		switch action.Kind {
//		case core.Probe: ev = …all probes at once, then Event{Kind: core.Probed}
//		case core.Write: ev = …one apply, then Event{Kind: core.Wrote}
//		case core.Wait:  ev = …wait until action.Until, then Event{Kind: core.Timer}
//		}
//	}
//
// Package reporter runs this loop.
//
// Nothing here may hold the reporter up, and nothing is ever queued: at any moment there is at most one set of
// results, and it is written, dropped, or replaced by the next.
package core
