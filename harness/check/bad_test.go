package check

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/history"
)

// known is a history that breaks one invariant. also lists others that it may break as a consequence.
type known struct {
	name  string
	id    string
	also  string
	build func() []history.Event
}

// refusedApply is an apply of cp-1's reporter that is refused for one cause.
func refusedApply(reason string, c history.Cause) history.Request {
	return history.Request{Verb: "patch", Resource: "kubeapiservers.operator.openshift.io", Subresource: "status", Name: "cluster", FieldManager: contract.FieldManager("cp-1"),
		ContentType: "application/apply-patch+yaml", Force: true, Reason: reason, Message: c.Field + ": " + c.Message, Causes: []history.Cause{c}}
}

func unforced(r history.Request) history.Request {
	r.Force = false
	return r
}

const sec = time.Second

// degradedAs makes the aggregator say x in place of what now holds, where when applies.
func degradedAs(x facts.Value, when func(w *world, now facts.Value) bool) func(*world) {
	return func(w *world) {
		w.bad.table = func(w *world, t map[string]facts.Value, message *string) {
			if when(w, t[contract.ConditionDegraded]) {
				t[contract.ConditionDegraded] = x
			}
		}
	}
}

func isTrue(_ *world, now facts.Value) bool { return now.Status == "True" }
func after(d time.Duration) func(*world, facts.Value) bool {
	return func(w *world, _ facts.Value) bool { return w.now.Sub(w.start) > d }
}

// entriesAs falsifies the first entry of cp-2's reports between two instants.
func entriesAs(from, to time.Duration, f func(w *world, e *facts.WireEntry)) func(*world) {
	return func(w *world) {
		w.bad.entries = func(w *world, node string, e []facts.WireEntry) []facts.WireEntry {
			if d := w.now.Sub(w.start); node == "cp-2" && d >= from && d < to {
				f(w, &e[0])
			}
			return e
		}
	}
}

func messageAs(f func(string) string) func(*world) {
	return func(w *world) { w.bad.message = f }
}

func requestAs(f func(w *world, r *history.Request)) func(*world) {
	return func(w *world) { w.bad.request = f }
}

// extra records payloads at 12 s.
func extra(payloads ...any) func() []history.Event {
	return func() []history.Event {
		return faulty(func(w *world) {
			w.at(12*sec, func(w *world) {
				for _, p := range flat(payloads) {
					w.now = w.now.Add(time.Millisecond)
					w.record("test", p)
				}
				w.now = w.start.Add(12 * sec)
			})
		}, "")
	}
}

// switching records payloads while the encryption is switched.
func switching(payloads ...any) func() []history.Event {
	action := func(state string) *history.Action {
		return &history.Action{ID: "switch", Verb: "encryption", State: state}
	}
	return extra(slices.Concat([]any{action(history.ActionBegan)}, payloads, []any{action(history.ActionDone)})...)
}

// operated is a history with an operator, which switches when it likes.
func operated(build func() []history.Event) func() []history.Event {
	return func() []history.Event {
		events := idleOperator(build)()
		decided := history.Event{Seq: events[0].Seq, At: events[0].At, Source: "test", Kind: history.KindDecision, Decision: &history.Decision{}}
		return slices.Insert(events, 1, decided)
	}
}

const forgedID = "NO-FORGED-EXCUSE"

// forging: at 12 s the reporter of cp-2 hangs for a while, and a line in the journal of its supervisor says why; paused is what an action pauses then.
func forging(role, state, paused string) func() []history.Event {
	return func() []history.Event {
		return faulty(func(w *world) {
			w.at(12*sec, func(w *world) {
				w.rep["cp-2"].paused = true
				if paused != "" {
					for _, state := range []string{history.ActionBegan, history.ActionDone} {
						w.record("engine", &history.Action{ID: "other", Verb: "pause", Target: paused, State: state})
					}
				}
				w.log.Record(w.now, "supervisor", &history.Process{Role: role, Node: "cp-2", State: state})
			}).at(16*sec, func(w *world) {
				w.rep["cp-2"].paused = false
				w.log.Record(w.now, "supervisor", &history.Process{Role: role, Node: "cp-2", State: map[string]string{
					history.ProcessPaused: history.ProcessResumed, history.ProcessSilenced: history.ProcessResumed, history.ProcessStopped: history.ProcessStarted}[state]})
			})
		}, "")
	}
}

const convergedID = "OPERATOR-CONVERGENCE"

// noted is a decision of an operator whose key 1 has these annotations.
func noted(converged, migrated string) *history.Decision {
	return &history.Decision{Key: 1, Keys: []uint64{1}, ConvergedKEK: converged, MigratedKEK: migrated}
}

// deciding is a history with decisions at 16 s, a second from one to the next.
func deciding(change func(*world), decisions ...*history.Decision) func() []history.Event {
	return func() []history.Event {
		return faulty(func(w *world) {
			for i, d := range decisions {
				w.at(time.Duration(16+i)*sec, func(w *world) { w.record("test", d) })
			}
			if change != nil {
				change(w)
			}
		}, "")
	}
}

// complaining is an operator that says True with a condition from 12 s on, while everything lies under the key that was asked for.
func complaining(condition string, last time.Duration, lies string) func() []history.Event {
	return idleOperator(func() []history.Event {
		w := newWorld(3, "1")
		w.at(12*sec, func(w *world) {
			for _, p := range flat([]any{&history.Process{Role: history.RoleOperator, State: history.ProcessReady}, &history.Decision{Key: 1, Keys: []uint64{1}},
				&history.Request{APIServer: "cp-1", User: "operator", Verb: "patch", Resource: "kubeapiservers.operator.openshift.io", Subresource: "status", Name: "cluster",
					Code: http.StatusOK, ResourceVersion: "complaint"},
				&history.Action{ID: "asked", Verb: "apiserver", State: history.ActionBegan, Params: map[string]any{"type": "KMS"}}, toldAll("kms-1", "identity"), moved("kms-1")}) {
				w.record("test", p)
			}
			w.set(history.Condition{Type: condition, Status: "True", Reason: "SyncError", LastTransitionTime: stamp(w.now)})
			w.publish("complaint", w.now)
		})
		w.at(14*sec, func(w *world) {
			lying := under(lies)
			lying.From = w.now
			w.record("test", lying)
		})
		w.boot()
		return w.finish(last)
	})
}

// converging has an aggregator of another profile than the one that runs.
func converging(more func(*world), last time.Duration) func() []history.Event {
	return func() []history.Event {
		w := newWorld(3, "1")
		w.run.AggregatorProfile, w.run.Contract = contract.AggregatorConvergence, history.FormHealthReports
		more(w)
		w.boot()
		return w.finish(last)
	}
}

// idleOperator is one with an operator that decides nothing.
func idleOperator(build func() []history.Event) func() []history.Event {
	return func() []history.Event {
		events := build()
		for i := range events {
			if run := events[i].Run; run != nil {
				by := *run
				by.Lifecycle = history.LifecycleOperator
				events[i].Run = &by
			}
		}
		return events
	}
}

// atEnd records the last payload when the run is over.
func atEnd(before, last any) func() []history.Event {
	return func() []history.Event {
		events := extra(before)()
		end := events[len(events)-1]
		l := history.NewLog(nil)
		for _, e := range events[:len(events)-1] {
			l.Append(e)
		}
		l.Record(end.At.Add(time.Second), "test", last)
		l.Append(end)
		return l.Events()
	}
}

// flat takes the lists apart.
func flat(payloads []any) (out []any) {
	for _, p := range payloads {
		if list, ok := p.(several); ok {
			out = append(out, list...)
			continue
		}
		out = append(out, p)
	}
	return out
}

func without(kind history.Kind) func() []history.Event {
	return func() []history.Event {
		var out []history.Event
		for _, e := range faulty(nil, "") {
			if e.Kind != kind {
				out = append(out, e)
			}
		}
		return out
	}
}

func plain(change func(*world)) func() []history.Event {
	return func() []history.Event { return faulty(change, "") }
}
func failing(change func(*world)) func() []history.Event {
	return func() []history.Event { return faulty(change, "error") }
}

func paused(change func(*world)) func() []history.Event {
	return func() []history.Event {
		w := newWorld(3, "1")
		w.at(10*sec, func(w *world) { w.pauseReporter("cp-2", true) })
		change(w)
		w.boot()
		return w.finish(30 * sec)
	}
}

func encryptCall(uid string) *history.Call {
	return &history.Call{Node: "cp-1", KeyID: "1", Method: "Encrypt", UID: uid, Outcome: "ok", Code: "OK"}
}

func preflightCall(method, uid string) *history.Call {
	return &history.Call{Node: history.RolePreflight, KeyID: "try-1", Method: method, UID: uid, Outcome: "ok", Code: "OK"}
}

func envelope(hop, uid string) *history.Envelope {
	return &history.Envelope{Hop: hop, Op: "encrypt", UID: uid, Node: "cp-1", OK: true}
}

func lineNaming(key, namespace, name string) *history.Envelope {
	return &history.Envelope{Hop: "kube-apiserver", Op: "use", UID: "u0", Node: "cp-1", Object: key, OK: true,
		For: history.EnvelopeRequest{Verb: "get", Version: "v1", Resource: "secrets", Namespace: namespace, Name: name}}
}

func data(op, digest string, ok bool) *history.Data {
	return &history.Data{Op: op, Object: "secrets/ns/a", Digest: digest, OK: ok, Want: "kms-1", Provider: "kms-1"}
}

// configured is an encryption event; toldAll are those of all nodes that were told something and have loaded it.
func configured(node, state string, providers ...string) *history.Encryption {
	return &history.Encryption{Node: node, State: state, Providers: providers}
}

type several []any

func toldAll(providers ...string) several {
	var all several
	for _, state := range []string{"told", "loaded"} {
		for _, n := range []string{"cp-1", "cp-2", "cp-3"} {
			all = append(all, configured(n, state, providers...))
		}
	}
	return all
}

func moved(to string) *history.Encryption { return configured("", "migrated", to) }

func under(providers ...string) *history.StorageInventory {
	c := &history.StorageInventory{}
	for _, p := range providers {
		c.Under = append(c.Under, history.Under{Provider: p, Count: 2, Example: "secrets/ns/a"})
	}
	return c
}

func expecting(keyIDs ...string) *history.Expected {
	x := &history.Expected{KMSActive: true}
	for _, n := range []string{"cp-1", "cp-2", "cp-3"} {
		x.Nodes = append(x.Nodes, history.ExpectedNode{Name: n, KeyIDs: keyIDs})
	}
	return x
}

// rolled is the pod of the API server on cp-1 that is made anew; the end of its API server comes before the others, its start after them.
func rolled(others ...any) several {
	server := func(state string) *history.Process {
		return &history.Process{Role: history.RoleAPIServer, Node: "cp-1", State: state}
	}
	all := append(several{server(history.ProcessStopped)}, others...)
	return append(all, server(history.ProcessStarted), server(history.ProcessReady),
		&history.Container{Node: "cp-1", Namespace: "kube-system", Pod: "kube-apiserver-cp-1", State: history.PodRevised, Revision: 2})
}

func pluginStopped() *history.Process {
	return &history.Process{Role: history.RolePlugin, Node: "cp-1", KeyID: "9", State: history.ProcessStopped}
}

func other(d *history.Data) *history.Data { d.Object = "secrets/ns/b"; return d }

func byReporter(r history.Request, code int) *history.Request {
	r.User, r.Code = contract.ReporterIdentity("cp-1"), code
	return &r
}

// lastWords is a restart of cp-2's reporter, which writes so often after it was asked to end.
func lastWords(writes int, end string) func(*world) {
	return func(w *world) {
		w.at(10*sec+300*milli, func(w *world) {
			w.record("engine", &history.Action{ID: "restart", Verb: "restart", Target: "process reporter/cp-1, reporter/cp-2", State: history.ActionBegan})
			w.rep["cp-2"].running = false
		})
		for range writes {
			w.at(10*sec+400*milli, func(w *world) {
				w.write("cp-2", []facts.WireEntry{wire("1", "kek-1", "healthy", contract.FormatTime(w.now), "")})
			})
		}
		w.at(10*sec+800*milli, func(w *world) {
			w.rep["cp-2"].running = false
			w.process(history.RoleReporter, "cp-2", "", end)
			w.startReporter("cp-2")
			w.record("engine", &history.Action{ID: "restart", Verb: "restart", Target: "process reporter/cp-1, reporter/cp-2", State: history.ActionDone})
		})
	}
}

func knownBad() []known {
	rollup := "ROLLUP-TRUTH "
	return append([]known{
		{"aggregator is deaf to errors", "FALSE-HEALTHY", rollup + "DETECTION", failing(degradedAs(said("False", "AsExpected"), isTrue))},
		{"reporter says healthy of a failing plugin", "FALSE-HEALTHY", "DETECTION TRUTHFUL-PROBE FALSE-ALARM", failing(entriesAs(10*sec, 20*sec, func(w *world, e *facts.WireEntry) { *e = wire("1", "kek-1", "healthy", e.LastChecked, "") }))},
		{"aggregator is deaf to a killed plugin", "FALSE-HEALTHY", rollup + "DETECTION", func() []history.Event {
			return faulty(degradedAs(said("False", "AsExpected"), isTrue), "down")
		}},
		{"aggregator is deaf to a plugin that refuses", "FALSE-HEALTHY", rollup + "DETECTION", func() []history.Event {
			return faulty(degradedAs(said("False", "AsExpected"), isTrue), "refuse")
		}},
		{"aggregator cries wolf", "FALSE-ALARM", rollup + "QUIET", plain(degradedAs(said("True", "PluginUnhealthy"), after(15*sec)))},
		{"aggregator knows nothing of a healthy cluster", "FALSE-ALARM", rollup + "QUIET", plain(degradedAs(said("Unknown", "ReportStale"), after(15*sec)))},
		{"aggregator names the wrong reason", "FALSE-ALARM", rollup, failing(degradedAs(said("True", "PluginUnhealthy"), isTrue))},
		{"detection takes 6 s", "DETECTION", rollup + "FALSE-HEALTHY QUIET", failing(degradedAs(said("False", "AsExpected"), func(w *world, now facts.Value) bool { return w.now.Before(w.start.Add(16 * sec)) }))},
		{"recovery takes 6 s", "RECOVERY", "TRUTHFUL-PROBE FALSE-ALARM", failing(entriesAs(20*sec, 26*sec, func(w *world, e *facts.WireEntry) {
			*e = wire("1", "", "error", e.LastChecked, "FailedPrecondition: key disabled")
		}))},
		{"nobody probes a plugin that came back", "RECOVERY", "TRUTHFUL-PROBE", func() []history.Event {
			return faulty(func(w *world) {
				w.bad.noProbe = func(node string) bool { return node == "cp-2" && w.now.After(w.start.Add(20*sec)) }
			}, "down")
		}},
		{"stale counts as healthy", "STALE-UNKNOWN", rollup, paused(degradedAs(said("False", "AsExpected"), func(_ *world, now facts.Value) bool { return now.Reason == "ReportStale" }))},
		{"missing counts as broken", "ABSENCE-IS-NOT-BROKEN", rollup + "FALSE-ALARM", func() []history.Event {
			return coldStart(degradedAs(said("True", "PluginUnreachable"), func(_ *world, now facts.Value) bool { return now.Reason == "ReportMissing" }))
		}},
		{"awaits for ever", "ABSENCE-IS-NOT-BROKEN", rollup, func() []history.Event {
			return coldStart(degradedAs(said("False", "AwaitingFirstReport"), func(_ *world, now facts.Value) bool { return now.Reason == "ReportMissing" }))
		}},
		{"overlooks a new node", "ROLLUP-TRUTH", "CONVERGENCE CADENCE", func() []history.Event { return knownLate(3 * sec) }},
		{"forgets a removed node", "NO-ORPHAN", "", func() []history.Event { return lateReporter(func(w *world) { w.bad.noClean = true }) }},
		{"forgets that KMS is off", "NO-ORPHAN", "", func() []history.Event { return disabled(func(w *world) { w.bad.noClean = true }) }},
		{"fights a late reporter", "NO-RESURRECTION", "CADENCE", func() []history.Event {
			return lateReporter(func(w *world) {
				w.bad.fight = true
				w.at(14*sec, func(*world) {})
				w.bad.period = 600 * time.Millisecond
			})
		}},
		{"last words of a reporter", "NO-RESURRECTION", "CADENCE TRUTHFUL-PROBE FRESH-ONLY MONOTONIC", plain(lastWords(2, history.ProcessStopped))},
		{"a reporter does not report a plugin that was added", "TRUTHFUL-PROBE", "FALSE-HEALTHY DETECTION", plain(func(w *world) {
			w.at(10*sec, func(w *world) { w.record("test", expecting("1", "9")) })
			w.at(10*sec+300*milli, func(w *world) {
				w.rep["cp-2"].running = false
				w.process(history.RoleReporter, "cp-2", "", history.ProcessStopped)
				w.startReporter("cp-2")
			})
		})},
		{"a reporter removes its facts.Entry when it ends", "NO-RESURRECTION", "", plain(func(w *world) {
			lastWords(0, history.ProcessStopped)(w)
			w.at(10*sec+500*milli, func(w *world) {
				r := refusedApply("Forbidden", history.Cause{})
				r.User, r.FieldManager, r.Code, r.Body = contract.ReporterIdentity("cp-2"), contract.FieldManager("cp-2"), 403, json.RawMessage(`{"metadata":{"name":"cluster"},"status":{}}`)
				w.record("audit/cp-2", &r)
			})
		})},
		{"a reporter writes until it is killed", "NO-RESURRECTION", "CADENCE TRUTHFUL-PROBE FRESH-ONLY MONOTONIC", plain(lastWords(2, history.ProcessKilled))},
		{"a reporter leaves out every third report", "CADENCE", "", plain(func(w *world) {
			n := map[string]int{}
			w.bad.entries = func(_ *world, node string, e []facts.WireEntry) []facts.WireEntry {
				if n[node]++; n[node]%3 == 0 {
					return nil
				}
				return e
			}
		})},
		{"lastChecked stands still for three writes", "MONOTONIC", "TRUTHFUL-PROBE FRESH-ONLY", plain(func(w *world) {
			n, last := map[string]int{}, map[string]string{}
			w.bad.entries = func(_ *world, node string, e []facts.WireEntry) []facts.WireEntry {
				if n[node]++; n[node]%3 == 1 {
					last[node] = e[0].LastChecked
				}
				e[0].LastChecked = last[node]
				return e
			}
		})},
		{"report of a dead reporter comes back", "NO-RESURRECTION", "TRUTHFUL-PROBE", func() []history.Event {
			return lateReporter(func(w *world) {
				w.at(25*sec, func(w *world) {
					w.write("cp-3", []facts.WireEntry{wire("1", "kek-1", "healthy", contract.FormatTime(w.now), "")})
				})
			})
		}},
		{"reporter under a common field manager", "OWNERSHIP", "", plain(requestAs(func(_ *world, r *history.Request) {
			if r.User != contract.AggregatorIdentity {
				r.FieldManager = "kms-health-reporter"
			}
		}))},
		{"reporter changes its field manager", "OWNERSHIP", "", plain(requestAs(func(w *world, r *history.Request) {
			if r.User == contract.ReporterIdentity("cp-2") && w.now.Sub(w.start) > 20*sec {
				r.FieldManager += "-after-a-restart"
			}
		}))},
		{"reporter applies without force", "OWNERSHIP", "", plain(requestAs(func(_ *world, r *history.Request) { r.Force = r.User == contract.AggregatorIdentity }))},
		{"reporter writes another's entry", "OWNERSHIP", "LEAST-PRIVILEGE", plain(requestAs(func(_ *world, r *history.Request) {
			r.Body = []byte(strings.ReplaceAll(string(r.Body), "KMSHealthReporter_cp-3", "KMSHealthReporter_cp-1"))
		}))},
		{"an facts.Entry has two owners", "OWNERSHIP", "", plain(func(w *world) {
			w.bad.owners = func(o map[string][]string) {
				if _, ok := o["condition/KMSHealthReporter_cp-2"]; ok {
					o["condition/KMSHealthReporter_cp-2"] = []string{contract.FieldManager("cp-2"), "kms-health-aggregator"}
				}
			}
		})},
		{"aggregator meddles with a foreign condition", "OWNERSHIP", "", plain(func(w *world) { w.bad.meddle = true })},
		{"aggregator removes a live node's report", "OWNERSHIP", rollup + "QUIET CONVERGENCE", plain(func(w *world) {
			w.at(15*sec+500*time.Millisecond, func(w *world) {
				w.remove("KMSHealthReporter_cp-2")
				w.submit(contract.AggregatorIdentity, contract.AggregatorFieldManager, nil)
			})
		})},
		{"aggregator removes the report of a node that is there for another second", "OWNERSHIP", rollup + "QUIET CONVERGENCE NO-ORPHAN ABSENCE-IS-NOT-BROKEN", func() []history.Event { return toldLate(sec) }},
		{"lastChecked goes back", "MONOTONIC", "TRUTHFUL-PROBE", plain(entriesAs(15*sec, 16*sec, func(w *world, e *facts.WireEntry) {
			e.LastChecked = contract.FormatTime(w.now.Add(-1500 * time.Millisecond))
		}))},
		{"lastChecked goes back with a clock that nobody set", "MONOTONIC", "TRUTHFUL-PROBE FRESH-ONLY", func() []history.Event { return clockBehind(false) }},
		{"reporter queues", "FRESH-ONLY", "MONOTONIC FALSE-ALARM", plain(entriesAs(10*sec, 20*sec, func(w *world, e *facts.WireEntry) { e.LastChecked = contract.FormatTime(w.now.Add(-3 * sec)) }))},
		{"reporter writes every 3 s", "CADENCE", "", plain(func(w *world) { w.bad.period = 3 * sec })},
		{"reporter writes every 3 s, for a short time", "CADENCE", "", func() []history.Event {
			w := newWorld(3, "1")
			w.bad.period = 3 * sec
			w.boot()
			return w.finish(15 * sec)
		}},
		{"reporter writes four times a second", "CADENCE", "", plain(func(w *world) { w.bad.period = sec / 4 })},
		{"reporters in lockstep", "CADENCE", "", plain(func(w *world) { w.bad.steady = true })},
		{"reporter stalls", "CADENCE", "FALSE-ALARM", plain(func(w *world) {
			w.bad.entries = func(w *world, node string, e []facts.WireEntry) []facts.WireEntry {
				if d := w.now.Sub(w.start); node == "cp-2" && d > 10*sec && d < 20*sec {
					return nil
				}
				return e
			}
		})},
		{"reporter writes only on change", "CADENCE", "FALSE-ALARM RECOVERY", failing(func(w *world) {
			last := map[string]string{}
			w.bad.entries = func(w *world, node string, e []facts.WireEntry) []facts.WireEntry {
				if last[node] == e[0].Status {
					return nil
				}
				last[node] = e[0].Status
				return e
			}
		})},
		{"reporter does not come back after its API server did", "CADENCE", "FALSE-ALARM", func() []history.Event {
			return interrupted(func(w *world, down bool) {
				w.process(history.RoleAPIServer, "cp-2", "", map[bool]string{true: history.ProcessKilled, false: history.ProcessReady}[down])
				w.rep["cp-2"].cut = true
			})
		}},
		{"reporter stands still while another node's etcd member is down", "CADENCE", "FALSE-ALARM", func() []history.Event {
			return interrupted(func(w *world, down bool) {
				w.process(history.RoleEtcd, "cp-1", "", map[bool]string{true: history.ProcessKilled, false: history.ProcessReady}[down])
			})
		}},
		{"wrong kekID", "TRUTHFUL-PROBE", "", plain(entriesAs(0, 60*sec, func(_ *world, e *facts.WireEntry) { e.KEKID = "kek-0" }))},
		{"unhealthy is reported as error", "TRUTHFUL-PROBE", "FALSE-ALARM", func() []history.Event {
			return faulty(entriesAs(10*sec, 20*sec, func(_ *world, e *facts.WireEntry) { e.Status, e.KEKID = "error", "" }), "unhealthy")
		}},
		{"wrong code in the detail", "TRUTHFUL-PROBE", "", failing(entriesAs(10*sec, 20*sec, func(_ *world, e *facts.WireEntry) {
			if e.Detail != "" {
				e.Detail = "PermissionDenied: no"
			}
		}))},
		{"healthz text is lost", "TRUTHFUL-PROBE", "", func() []history.Event {
			return faulty(entriesAs(10*sec, 20*sec, func(_ *world, e *facts.WireEntry) {
				if e.Detail != "" {
					e.Detail = "unhealthy"
				}
			}), "unhealthy")
		}},
		{"reports without asking", "TRUTHFUL-PROBE", "", plain(func(w *world) {
			w.bad.noProbe = func(n string) bool { return n == "cp-2" && w.now.After(w.start.Add(9*sec)) }
		})},
		{"forgets the second plugin", "TRUTHFUL-PROBE", "FALSE-ALARM", plain(func(w *world) {
			w.keyIDs = []string{"2", "1"}
			w.bad.entries = func(_ *world, _ string, e []facts.WireEntry) []facts.WireEntry { return e[:1] }
		})},
		{"write key last", "TRUTHFUL-PROBE", "", plain(func(w *world) {
			w.keyIDs = []string{"2", "1"}
			w.bad.entries = func(_ *world, _ string, e []facts.WireEntry) []facts.WireEntry { return []facts.WireEntry{e[1], e[0]} }
		})},
		{"message is not minified", "FORMAT", "", plain(messageAs(func(s string) string { return strings.ReplaceAll(s, ",", ", ") }))},
		{"fields in another order", "FORMAT", "", plain(messageAs(func(s string) string {
			return strings.ReplaceAll(s, `"keyID":"1","kekID":"kek-1"`, `"kekID":"kek-1","keyID":"1"`)
		}))},
		{"unknown field", "FORMAT", "", plain(messageAs(func(s string) string { return strings.ReplaceAll(s, `}`, `,"node":"x"}`) }))},
		{"detail with a control character", "FORMAT", "", failing(entriesAs(0, 60*sec, func(_ *world, e *facts.WireEntry) {
			if e.Detail != "" {
				e.Detail += "\x01"
			}
		}))},
		{"detail is too long", "FORMAT", "", failing(entriesAs(0, 60*sec, func(_ *world, e *facts.WireEntry) {
			if e.Detail != "" {
				e.Detail += strings.Repeat("x", 1024)
			}
		}))},
		{"detail is missing", "FORMAT", "TRUTHFUL-PROBE", failing(entriesAs(0, 60*sec, func(_ *world, e *facts.WireEntry) { e.Detail = "" }))},
		{"lastTransitionTime moves", "FORMAT", "", plain(func(w *world) {
			w.bad.lastTime = func(n int) string { return stamp(w.start.Add(time.Duration(n) * sec)) }
		})},
		{"not JSON", "FORMAT", "ROLLUP-TRUTH FALSE-ALARM CONVERGENCE", plain(messageAs(func(string) string { return "all is well" }))},
		{"typed item without remoteKeyID", "FORMAT", "CONVERGENCE TRUTHFUL-PROBE", plain(func(w *world) {
			w.run.Contract = "healthreports"
			w.at(12*sec, func(w *world) {
				w.typed[0].RemoteKeyID = ""
				w.submit(contract.ReporterIdentity("cp-1"), contract.FieldManager("cp-1"), nil)
			})
		})},
		{"wrong reason", "ROLLUP-TRUTH", "FALSE-ALARM", func() []history.Event {
			return faulty(degradedAs(said("True", "PluginUnreachable"), isTrue), "unhealthy")
		}},
		{"message names nobody", "ROLLUP-TRUTH", "DETECTION", failing(func(w *world) {
			w.bad.table = func(_ *world, _ map[string]facts.Value, message *string) { *message = "something is wrong" }
		})},
		{"message names a neighbour", "ROLLUP-TRUTH", "DETECTION", failing(func(w *world) {
			w.bad.table = func(_ *world, _ map[string]facts.Value, message *string) {
				*message = strings.ReplaceAll(*message, "cp-2/1", "cp-2/11")
			}
		})},
		{"write key unusable, yet available", "ROLLUP-TRUTH", "", failing(func(w *world) {
			w.bad.table = func(_ *world, t map[string]facts.Value, _ *string) {
				t[contract.ConditionAvailable] = said("True", "AsExpected")
			}
		})},
		{"message is too long", "ROLLUP-TRUTH", "", failing(func(w *world) {
			w.bad.table = func(_ *world, _ map[string]facts.Value, message *string) { *message += " " + strings.Repeat("x", 5000) }
		})},
		{"writes in a steady state", "QUIET", "", plain(func(w *world) {
			w.at(20*sec, func(w *world) { w.bad.chatty = true }).at(21*sec, func(w *world) { w.bad.chatty = false })
		})},
		{"two aggregators write the same", "QUIET", "", failing(func(w *world) {
			w.bad.request = func(w *world, r *history.Request) {
				if r.User == contract.AggregatorIdentity {
					again := *r
					w.record("audit", &again)
				}
			}
		})},
		{"union hides a failure", "UNION", "", failing(func(w *world) {
			w.bad.union = func(c []*history.Condition) []*history.Condition { c[0].Status = "False"; return c }
		})},
		{"union does not say whose failure it is", "UNION", "", failing(func(w *world) {
			w.bad.union = func(c []*history.Condition) []*history.Condition { c[0].Message = "bad"; return c }
		})},
		{"nobody writes the ClusterOperator", "UNION", "", plain(func(w *world) {
			w.bad.union = func([]*history.Condition) []*history.Condition { return nil }
		})},
		{"a report reaches the ClusterOperator", "UNION", "", plain(func(w *world) {
			w.bad.union = func(c []*history.Condition) []*history.Condition {
				return append(c, &history.Condition{Type: "KMSHealthReporter_cp-1", Status: "True"})
			}
		})},
		{"converged in the middle of a rotation", "CONVERGENCE", rollup, plain(func(w *world) {
			w.at(15*sec, func(w *world) { w.plugins["cp-1/1"].kek = "kek-2" })
			w.bad.table = func(_ *world, t map[string]facts.Value, _ *string) {
				t[contract.ConditionProgressing] = said("False", "AsExpected")
			}
		})},
		{"never converged", "CONVERGENCE", rollup, plain(func(w *world) {
			w.bad.table = func(_ *world, t map[string]facts.Value, _ *string) {
				t[contract.ConditionProgressing] = said("False", "NotConverged")
			}
		})},
		{"Encrypt without a uid", "UID", "", extra(encryptCall(""))},
		{"two operations with one uid", "UID", "", extra(encryptCall("u1"), encryptCall("u1"))},
		{"two Encrypts of a pre-flight program with one uid", "UID", "", extra(preflightCall("Encrypt", "u1"), preflightCall("Encrypt", "u1"))},
		{"a pre-flight program's Decrypt without a uid", "UID", "", extra(preflightCall("Decrypt", ""))},
		{"the API server made another uid", "UID", "", extra(encryptCall("u1"), envelope("kube-apiserver", "u2"))},
		{"the remote KMS was given no uid", "UID", "", extra(encryptCall("u1"), envelope("kube-apiserver", "u1"), envelope("remote-kms", ""))},
		{"an uid is used again much later", "UID", "", func() []history.Event {
			return faulty(func(w *world) {
				for _, at := range []time.Duration{11 * sec, 14 * sec} {
					w.at(at, func(w *world) {
						w.record("test", envelope("kube-apiserver", "u1"))
						c := encryptCall("u1")
						c.Began = w.now
						w.record("test", c)
					})
				}
			}, "")
		}},
		{"the API server tells of a call that no plugin had", "UID", "", func() []history.Event { return keyAskedFor("cp-1") }},
		{"a Decrypt gets lost while one of another node fails", "UID", "", func() []history.Event { return decryptGivenUp("cp-2") }},
		{"the API server names another object", "UID", "", extra(lineNaming("/registry/secrets/ns/a", "ns", "b"))},
		{"the API server names no namespace", "UID", "", extra(lineNaming("/registry/secrets/ns/a", "", "a"))},
		{"the remote KMS was given another uid", "UID", "", extra(encryptCall("u1"), envelope("kube-apiserver", "u1"), envelope("remote-kms", "u3"))},
		{"an object reads back changed", "NO-DATA-LOSS", "", extra(data("written", "d1", true), data("read", "d2", true))},
		{"an object does not read back", "NO-DATA-LOSS", "", extra(data("written", "d1", true), data("read", "", false))},
		{"what a snapshot has brought back does not read back", "NO-DATA-LOSS", "", extra(data("written", "d1", true), data("restored", "d1", true), data("read", "", false))},
		{"a key goes that a snapshot has brought objects back under", "SWITCH-ORDER", "", extra(toldAll("aescbc-2", "kms-1", "identity"), moved("aescbc-2"), data("restored", "d1", true), toldAll("aescbc-2", "identity"))},
		{"an object is not read back", "NO-DATA-LOSS", "", extra(data("written", "d1", true), other(data("written", "d1", true)), data("read", "d1", true))},
		{"an object is stored in the clear", "NO-DATA-LOSS", "", extra(data("written", "d1", true), &history.Data{Op: "raw", Object: "secrets/ns/a", OK: true, Provider: "identity"})},
		{"an object is lost to a read at the very end", "NO-DATA-LOSS", "", atEnd(data("written", "d1", true), data("read", "", false))},
		{"objects lie under a removed key", "NO-DATA-LOSS", "", extra(toldAll("aescbc-2", "kms-1", "identity"), moved("aescbc-2"), toldAll("aescbc-2", "identity"), under("aescbc-2", "kms-1"))},
		{"a migration skips an object", "NO-DATA-LOSS", "", extra(toldAll("aescbc-2", "kms-1", "identity"), moved("aescbc-2"), under("aescbc-2", "kms-1"))},
		{"clear text is left where everything was encrypted", "NO-DATA-LOSS", "", extra(toldAll("kms-1", "identity"), moved("kms-1"), under("kms-1", "identity"))},
		{"an object lies under a key that one API server does not have", "NO-DATA-LOSS", "", extra(toldAll("kms-1", "identity"), configured("cp-1", "told", "kms-1", "aescbc-2"), under("aescbc-2"))},
		{"a key is pruned that objects lie under", "NO-DATA-LOSS", "", extra(toldAll("kms-2", "kms-1", "identity"), &history.Decision{Key: 2, Keys: []uint64{2}}, under("kms-2", "kms-1"))},
		{"a key goes before the migration", "SWITCH-ORDER", "", extra(toldAll("kms-1", "aescbc-2", "identity"), toldAll("aescbc-2", "identity"))},
		{"two plugins with one provider name", "SWITCH-ORDER", "", extra(toldAll("kms-1", "identity"), toldAll("kms-1", "kms-1", "identity"))},
		{"a key is not kept for reading", "SWITCH-ORDER", "", extra(toldAll("kms-1", "identity"), toldAll("kms-1", "aescbc-2"), toldAll("aescbc-2"))},
		{"one writes what another cannot read yet", "SWITCH-ORDER", "", extra(toldAll("kms-1", "identity"), configured("cp-1", "told", "kms-2", "kms-1", "identity"))},
		{"the next stage begins before all have loaded the last", "SWITCH-ORDER", "", extra(toldAll("kms-1", "identity"),
			configured("cp-1", "told", "kms-1", "kms-2", "identity"), configured("cp-2", "told", "kms-1", "kms-2", "identity"), configured("cp-3", "told", "kms-1", "kms-2", "identity"),
			configured("cp-1", "loaded", "kms-1", "kms-2", "identity"), configured("cp-2", "loaded", "kms-1", "kms-2", "identity"),
			configured("cp-1", "told", "kms-2", "kms-1", "identity"))},
		{"a node joins with a configuration that cannot read what the others have written", "SWITCH-ORDER", "", extra(toldAll("kms-1", "identity"), configured("cp-4", "told", "identity"))},
		{"all is said to be migrated while one writes with the key of before", "SWITCH-ORDER", "cp-1", extra(toldAll("kms-1", "identity"), toldAll("kms-1", "aescbc-2", "identity"),
			configured("cp-2", "told", "aescbc-2", "kms-1", "identity"), configured("cp-2", "loaded", "aescbc-2", "kms-1", "identity"),
			configured("cp-3", "told", "aescbc-2", "kms-1", "identity"), configured("cp-3", "loaded", "aescbc-2", "kms-1", "identity"),
			configured("cp-1", "told", "aescbc-2", "kms-1", "identity"), moved("aescbc-2"))},
		{"a plugin ends while its API server needs it", "SWITCH-ORDER", "", switching(toldAll("identity", "kms-9"), pluginStopped())},
		{"a plugin ends before its reporter", "SWITCH-ORDER", "", switching(expecting("1", "9"), toldAll("identity"), expecting("1"), pluginStopped())},
		{"an operator ends a plugin while its API server needs it", "SWITCH-ORDER", "", operated(extra(toldAll("identity", "kms-9"), pluginStopped()))},
		{"a pod is made anew without a plugin that its API server needs", "SWITCH-ORDER", "", operated(extra(toldAll("identity", "kms-9"), rolled(pluginStopped())))},
		{"an operator ends a plugin before its reporter", "SWITCH-ORDER", "", operated(extra(expecting("1", "9"), toldAll("identity"), expecting("1"), pluginStopped()))},
		{"nodes agree on a kekID that none reports", convergedID, "", deciding(nil, noted("kek-2", ""))},
		{"nodes agree although one reports another kekID", convergedID, "", deciding(func(w *world) {
			w.at(12*sec, func(w *world) { w.plugins["cp-1/1"].kek, w.plugins["cp-2/1"].kek = "kek-2", "kek-2" })
		}, noted("kek-2", ""))},
		{"nodes agree although one plugin is unhealthy", convergedID, "", deciding(func(w *world) { w.at(12*sec, func(w *world) { w.fault("cp-2/1", "unhealthy") }) }, noted("kek-1", ""))},
		{"nodes agree although one plugin does not answer", convergedID, "", deciding(func(w *world) { w.at(12*sec, func(w *world) { w.fault("cp-2/1", "error") }) }, noted("kek-1", ""))},
		{"nodes agree although one report has no kekID", convergedID, "TRUTHFUL-PROBE FORMAT ROLLUP-TRUTH CONVERGENCE", deciding(entriesAs(12*sec, 25*sec, func(_ *world, e *facts.WireEntry) { e.KEKID = "" }), noted("kek-1", ""))},
		{"nodes agree although one report is stale", convergedID, "", deciding(func(w *world) { w.at(10*sec, func(w *world) { w.pauseReporter("cp-2", true) }) }, noted("kek-1", ""))},
		{"nodes agree although one has not reported", convergedID, "", func() []history.Event {
			w := newWorld(3, "1")
			w.at(2*sec, func(w *world) { w.record("test", noted("kek-1", "")) }).at(4*sec, func(w *world) { w.startReporter("cp-3") })
			w.boot("cp-3")
			return w.finish(20 * sec)
		}},
		{"a single node agrees although its plugin is unhealthy", convergedID, "", func() []history.Event {
			w := newWorld(1, "1")
			w.at(10*sec, func(w *world) { w.fault("cp-1/1", "unhealthy") }).at(16*sec, func(w *world) { w.record("test", noted("kek-1", "")) })
			w.boot()
			return w.finish(25 * sec)
		}},
		{"nodes agree on the key of another plugin", convergedID, "", deciding(nil, &history.Decision{Key: 2, ConvergedKEK: "kek-1"})},
		{"everything is encrypted anew although one report is stale meanwhile", convergedID, "", deciding(func(w *world) {
			w.at(8*sec, func(w *world) { w.record("test", noted("kek-1", "")) }).at(10*sec, func(w *world) { w.pauseReporter("cp-2", true) })
		}, noted("", "kek-1"))},
		{"an object lies in clear text while all is said to be encrypted", "ENCRYPTED", "NO-DATA-LOSS", complaining("Encrypted", 25*sec, "identity")},
		{"a condition of a controller stays without a cause", "CONDITION-ENDS", "UNION", complaining("EncryptionKeyControllerDegraded", 200*sec, "kms-1")},
		{"an aggregator that says nothing of agreement", "AGREEMENT", "OWNERSHIP", converging(func(*world) {}, 90*sec)},
		{"an aggregator that degrades at once", "AGREEMENT-DEGRADED", "AGREEMENT OWNERSHIP", converging(func(w *world) {
			w.at(12*sec, func(w *world) {
				w.set(history.Condition{Type: contract.ConditionConvergenceDegraded, Status: "True", Reason: "X", LastTransitionTime: stamp(w.now)})
				w.publish("degraded", w.now)
			})
		}, 20*sec)},
		{"an aggregator that leaves what is old", "AGREEMENT-PRUNED", "AGREEMENT OWNERSHIP CADENCE", converging(func(w *world) {
			w.at(10*sec, func(w *world) { w.stopReporter("cp-2") })
		}, 700*sec)},
		{"an facts.Entry is refused for its content", "ACCEPTED", "", extra(byReporter(refusedApply("Invalid", history.Cause{Reason: "FieldValueRequired",
			Message: "Required value", Field: "status.encryptionStatus.healthReports[0].remoteKeyID"}), 422))},
		{"an apply without force meets another manager", "OWNERSHIP", "", extra(byReporter(unforced(refusedApply("Conflict", history.Cause{Reason: "FieldManagerConflict",
			Message: `conflict with "kubectl"`, Field: ".status.conditions"})), 409))},
		{"an facts.Entry over the bounds of the admission policy", "ACCEPTED", "", extra(byReporter(refusedApply("Forbidden", history.Cause{
			Message: "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: the texts of a reporter's condition have at most 65536 bytes"}), 403))},
		{"a field that the CRD does not have", "ACCEPTED", "", extra(byReporter(history.Request{Verb: "patch", Resource: "kubeapiservers.operator.openshift.io", Subresource: "status",
			Name: "cluster", FieldManager: contract.FieldManager("cp-1"), ContentType: "application/apply-patch+yaml", Force: true,
			Message: "failed to create typed patch object (/cluster; operator.openshift.io/v1, Kind=KubeAPIServer): .status.encryptionStatus: field not declared in schema"}, 500))},
		{"reporter reads secrets", "LEAST-PRIVILEGE", "", extra(byReporter(history.Request{Verb: "list", Resource: "secrets"}, 200))},
		{"reporter updates the CR", "LEAST-PRIVILEGE", "OWNERSHIP", extra(byReporter(history.Request{Verb: "update", Resource: "kubeapiservers.operator.openshift.io", Name: "cluster", FieldManager: contract.FieldManager("cp-1")}, 200))},
		{"reporter discovers", "LEAST-PRIVILEGE", "", extra(byReporter(history.Request{Verb: "get"}, 200))},
		{"a reporter exits", "NO-EXIT", "CADENCE STALE-UNKNOWN", plain(func(w *world) {
			w.at(12*sec, func(w *world) {
				w.rep["cp-2"].running = false
				w.record("backend", &history.Process{Role: history.RoleReporter, Node: "cp-2", State: history.ProcessExited, Detail: "exit code 3", Output: "no such\nflag"})
			})
		})},
		{"a plugin logs what it encrypts", "NOTHING-SECRET", "", extra(&history.Secrecy{Log: "journal/cp-1/1", Lines: 7, Values: 1, Object: "secrets/ns/a", What: "value", Form: "hex"})},
		{"a key_id comes back", "KEY-ID-STABLE", "", plain(func(w *world) {
			w.at(12*sec, func(w *world) { w.plugins["cp-2/1"].kek = "kek-2" }).at(15*sec, func(w *world) { w.plugins["cp-2/1"].kek = "kek-1" })
		})},
		{"a program writes that it was paused", forgedID, "CADENCE ROLLUP-TRUTH FALSE-ALARM", forging(history.RoleReporter, history.ProcessPaused, "")},
		{"a program writes that it was paused while another was", forgedID, "CADENCE ROLLUP-TRUTH FALSE-ALARM", forging(history.RoleReporter, history.ProcessPaused, "process aggregator/")},
		{"a program writes that it was silenced", forgedID, "CADENCE ROLLUP-TRUTH FALSE-ALARM", forging(history.RoleReporter, history.ProcessSilenced, "")},
		{"a program writes that it was stopped", forgedID, "CADENCE ROLLUP-TRUTH FALSE-ALARM", forging(history.RoleReporter, history.ProcessStopped, "")},
		{"no action", "NOTHING-RAN", "", without(history.KindAction)},
		{"no expectation", "NOTHING-RAN", "", without(history.KindExpectation)},
		{"no observation", "NOTHING-RAN", "", without(history.KindObject)},
		{"no audited request", "NOTHING-RAN", "", without(history.KindRequest)},
		{"no call", "NOTHING-RAN", "TRUTHFUL-PROBE RECOVERY", without(history.KindCall)},
		{"an operator that never decides", "NOTHING-RAN", "", idleOperator(func() []history.Event { return faulty(nil, "") })},
		{"no call of an operator's plugins", "NOTHING-RAN", "TRUTHFUL-PROBE RECOVERY", operated(without(history.KindCall))},
		{"empty", "NOTHING-RAN", "", func() []history.Event { return nil }},
	}, badStreams()...)
}

func (k known) String() string { return fmt.Sprintf("%s: %s", k.id, k.name) }
