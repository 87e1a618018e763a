package check

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/history"
)

// fine are histories of a system that keeps the contract; no invariant may object.
func fine() map[string]func() []history.Event {
	s := time.Second
	return map[string]func() []history.Event{
		"nothing happens":    func() []history.Event { return faulty(nil, "") },
		"unhealthy":          func() []history.Event { return faulty(nil, "unhealthy") },
		"error":              func() []history.Event { return faulty(nil, "error") },
		"hang":               func() []history.Event { return faulty(nil, "hang") },
		"killed":             func() []history.Event { return faulty(nil, "down") },
		"refuses":            func() []history.Event { return faulty(nil, "refuse") },
		"logs were searched": extra(&history.Secrecy{Log: "log/cp-1", Lines: 70, Values: 3}),
		"a pre-flight program has one uid for a check":    extra(preflightCall("Encrypt", "u1"), preflightCall("Decrypt", "u1")),
		"a Decrypt is given up beside one that failed":    func() []history.Event { return decryptGivenUp("cp-1") },
		"a key cannot be opened where the plugin refuses": func() []history.Event { return keyAskedFor("cp-2") },
		"typed form": func() []history.Event {
			return faulty(func(w *world) { w.run.Contract = "healthreports" }, "error")
		},
		"stale reporter": func() []history.Event {
			w := newWorld(3, "1")
			w.at(10*s, func(w *world) { w.pauseReporter("cp-2", true) }).at(25*s, func(w *world) { w.pauseReporter("cp-2", false) })
			w.boot()
			return w.finish(40 * s)
		},
		"stale below a worse failure": func() []history.Event {
			w := newWorld(3, "1")
			w.at(10*s, func(w *world) { w.fault("cp-1/1", "unhealthy") }).at(12*s, func(w *world) { w.pauseReporter("cp-2", true) })
			w.at(25*s, func(w *world) { w.pauseReporter("cp-2", false) }).at(30*s, func(w *world) { w.fault("cp-1/1", "") })
			w.boot()
			return w.finish(45 * s)
		},
		"node replaced": func() []history.Event {
			w := newWorld(3, "1")
			w.at(10*s, func(w *world) { w.nodes = []string{"cp-1", "cp-2"}; w.stopReporter("cp-3"); w.expect() })
			w.at(20*s, func(w *world) {
				w.nodes, w.since["cp-4"] = append(w.nodes, "cp-4"), w.now
				w.plugins["cp-4/1"], w.rep["cp-4"] = &fakePlugin{kek: "kek-1"}, &fakeReporter{}
				w.process(history.RolePlugin, "cp-4", "1", history.ProcessReady)
				w.expect()
			}).at(22*s, func(w *world) { w.startReporter("cp-4") })
			w.boot()
			return w.finish(40 * s)
		},
		"a node is known within the second of its creation": func() []history.Event { return knownLate(2 * s) },
		"late reporter": func() []history.Event { return lateReporter(nil) },
		"aggregator restarts": func() []history.Event {
			w := newWorld(3, "1")
			w.at(10*s, (*world).killAggregator).at(12*s, func(w *world) { w.fault("cp-1/1", "error") })
			w.at(20*s, (*world).startAggregator).at(30*s, func(w *world) { w.fault("cp-1/1", "") })
			w.boot()
			return w.finish(45 * s)
		},
		"encryption is switched while one API server is down": extra(
			&history.Process{Role: history.RoleAPIServer, Node: "cp-3", State: history.ProcessKilled},
			configured("cp-1", "told", "kms-1", "identity"), configured("cp-1", "loaded", "kms-1", "identity"),
			configured("cp-2", "told", "kms-1", "identity"), configured("cp-2", "loaded", "kms-1", "identity"), configured("cp-3", "told", "kms-1", "identity"),
			configured("cp-1", "told", "kms-1", "aescbc-2", "identity"), configured("cp-2", "told", "kms-1", "aescbc-2", "identity"), configured("cp-3", "told", "kms-1", "aescbc-2", "identity"),
			configured("cp-1", "loaded", "kms-1", "aescbc-2", "identity"), configured("cp-2", "loaded", "kms-1", "aescbc-2", "identity"),
			configured("cp-1", "told", "aescbc-2", "kms-1", "identity"), configured("cp-2", "told", "aescbc-2", "kms-1", "identity"), configured("cp-3", "told", "aescbc-2", "kms-1", "identity"),
			configured("cp-1", "loaded", "aescbc-2", "kms-1", "identity"), configured("cp-2", "loaded", "aescbc-2", "kms-1", "identity"),
			&history.Process{Role: history.RoleAPIServer, Node: "cp-3", State: history.ProcessReady}, configured("cp-3", "loaded", "aescbc-2", "kms-1", "identity"),
			under("kms-1", "aescbc-2"), moved("aescbc-2"), under("aescbc-2"), toldAll("aescbc-2", "identity"), under("aescbc-2")),
		"an operator sees nodes agree":                deciding(nil, noted("kek-1", ""), noted("", "kek-1")),
		"an operator sees nodes agree for an instant": deciding(func(w *world) { w.at(15*s, func(w *world) { w.fault("cp-2/1", "unhealthy") }) }, noted("kek-1", ""), noted("", "")),
		"an operator counts no node that has left": deciding(func(w *world) {
			w.at(14*s, func(w *world) { w.fault("cp-3/1", "unhealthy") })
			w.at(15*s, func(w *world) { w.nodes = []string{"cp-1", "cp-2"}; w.stopReporter("cp-3"); w.expect() })
		}, noted("kek-1", "")),
		"an operator finds a key that is under its KEK already": deciding(func(w *world) { w.at(12*s, func(w *world) { w.fault("cp-2/1", "error") }) }, noted("", "kek-1")),
		"a KEK is deleted, and what lay under it":               extra(data("written", "d1", true), &history.Action{ID: "delete", Verb: "kms", Params: map[string]any{"op": "delete"}, State: history.ActionDone}, data("read", "", false)),
		"a snapshot is restored, with what is older and without what is newer": extra(toldAll("aescbc-2", "kms-1", "identity"), data("written", "d1", true), moved("aescbc-2"), data("written", "d2", true), other(data("written", "d3", true)),
			data("restored", "d1", true), other(data("restored", "", true)), data("read", "d1", true), under("aescbc-2", "kms-1")),
		"aggregator paused":   aggregatorStill(history.ProcessPaused),
		"aggregator silenced": aggregatorStill(history.ProcessSilenced),
		"cold start":          func() []history.Event { return coldStart(nil) },
		"API server down": func() []history.Event {
			return interrupted(func(w *world, down bool) {
				state := map[bool]string{true: history.ProcessKilled, false: history.ProcessReady}[down]
				w.process(history.RoleAPIServer, "cp-2", "", state)
			})
		},
		"API server drains": func() []history.Event {
			return interrupted(func(w *world, down bool) {
				if down {
					w.process(history.RoleAPIServer, "cp-2", "", history.ProcessStopping)
					w.at(20*s, func(w *world) { w.process(history.RoleAPIServer, "cp-2", "", history.ProcessStopped) })
					return
				}
				w.process(history.RoleAPIServer, "cp-2", "", history.ProcessReady)
			})
		},
		"node without power": func() []history.Event {
			return interrupted(func(w *world, down bool) {
				state := map[bool]string{true: history.ProcessKilled, false: history.ProcessReady}[down]
				w.process(history.RoleEtcd, "cp-2", "", state)
				w.process(history.RoleNode, "cp-2", "", state)
			})
		},
		"reporter cut off": func() []history.Event {
			return interrupted(func(w *world, down bool) {
				state := map[bool]string{true: history.LinkCut, false: history.LinkOK}[down]
				w.record("backend", &history.Link{From: history.RoleReporter, To: history.RoleAPIServer, Node: "cp-2", State: state})
			})
		},
		"watch delivers late": func() []history.Event {
			events := faulty(nil, "error")
			from, to := events[0].At.Add(9*s), events[0].At.Add(14*s)
			for i := range events {
				if events[i].Object != nil && events[i].At.After(from) && events[i].At.Before(to) {
					events[i].At = to
				}
			}
			return events
		},
		"own apply refused unread": func() []history.Event {
			return extra(byReporter(history.Request{Verb: "patch", Resource: "kubeapiservers.operator.openshift.io", Subresource: "status", Name: "cluster",
				FieldManager: contract.FieldManager("cp-1"), Force: true, ContentType: "application/merge-patch+json"}, 403))()
		},
		"a clock that is set back": func() []history.Event { return clockBehind(true) },
		"objects sealed with a key from before": func() []history.Event {
			use := envelope("kube-apiserver", "long-ago")
			use.Op = "use"
			return extra(encryptCall("u1"), envelope("kube-apiserver", "u1"), use)()
		},
		"removed twice, late twice": func() []history.Event {
			return lateReporter(func(w *world) {
				all := []string{"cp-1", "cp-2", "cp-3"}
				w.at(12*s+500*time.Millisecond, func(w *world) {
					w.nodes = all
					w.expect()
					w.startReporter("cp-3")
					delete(w.agg.missing, "removed cp-3")
				})
				w.at(20*s, func(w *world) { w.nodes = all[:2]; w.expect() })
				w.at(21*s+500*time.Millisecond, func(w *world) { w.stopReporter("cp-3") })
			})
		},
		"rotation": func() []history.Event {
			w := newWorld(3, "1")
			for i, p := range []string{"cp-1/1", "cp-2/1", "cp-3/1"} {
				w.at(time.Duration(10+3*i)*s, func(w *world) { w.plugins[p].kek = "kek-2" })
			}
			w.boot()
			return w.finish(35 * s)
		},
		"migration": func() []history.Event { return faulty(func(w *world) { w.keyIDs = []string{"2", "1"} }, "error") },
		"disabled":  func() []history.Event { return disabled(nil) },
		"an API server serves before it is said to be ready": func() []history.Event { return servedEarly(history.ProcessStarted) },
		"a removed node is told of late":                     func() []history.Event { return toldLate(s / 10) },
	}
}

// knownLate is a node that the aggregator knows of a while after the second of its creation.
func knownLate(late time.Duration) []history.Event {
	w := newWorld(3, "1")
	w.at(20*time.Second, func(w *world) {
		known := w.nodes
		w.nodes, w.since["cp-4"] = append(slices.Clone(known), "cp-4"), w.now
		w.expect()
		w.nodes = known
	}).at(20*time.Second+late, func(w *world) {
		w.nodes = append(w.nodes, "cp-4")
		w.plugins["cp-4/1"], w.rep["cp-4"] = &fakePlugin{kek: "kek-1"}, &fakeReporter{}
		w.process(history.RolePlugin, "cp-4", "1", history.ProcessReady)
		w.startReporter("cp-4")
	})
	w.boot()
	return w.finish(40 * time.Second)
}

// faulty is three nodes of which cp-2/1 has a fault from 10 s to 20 s.
func faulty(change func(*world), fault string) []history.Event {
	w := newWorld(3, "1")
	if change != nil {
		change(w)
	}
	if fault != "" {
		w.at(10*time.Second, func(w *world) { w.fault("cp-2/1", fault) }).at(20*time.Second, func(w *world) { w.fault("cp-2/1", "") })
	}
	w.boot()
	return w.finish(35 * time.Second)
}

// interrupted: the writes of cp-2 do not arrive from 10 s to 22 s, for a reason that tell records.
func interrupted(tell func(w *world, down bool)) []history.Event {
	w := newWorld(3, "1")
	w.at(10*time.Second, func(w *world) { w.rep["cp-2"].cut = true; tell(w, true) })
	w.at(22*time.Second, func(w *world) { w.rep["cp-2"].cut = false; tell(w, false) })
	w.boot()
	return w.finish(40 * time.Second)
}

// lateReporter goes on for a moment after its node was removed.
func lateReporter(change func(*world)) []history.Event {
	w := newWorld(3, "1")
	w.at(10*time.Second, func(w *world) { w.nodes = []string{"cp-1", "cp-2"}; w.expect() })
	w.at(11*time.Second+500*time.Millisecond, func(w *world) { w.stopReporter("cp-3") })
	if change != nil {
		change(w)
	}
	w.boot()
	return w.finish(35 * time.Second)
}

// servedEarly: everything is away from 10 s on, and the aggregator finds its API server again long before the history calls that ready.
func servedEarly(event string) []history.Event {
	w := newWorld(1, "1")
	w.at(10*time.Second, func(w *world) {
		w.rep["cp-1"].cut, w.agg.paused = true, true
		w.process(history.RoleAPIServer, "cp-1", "", history.ProcessKilled)
		w.process(history.RoleAPIServer, "cp-1", "", event)
	})
	w.at(25*time.Second, func(w *world) { w.agg.paused = false })
	w.at(27*time.Second, func(w *world) {
		w.process(history.RoleAPIServer, "cp-1", "", history.ProcessReady)
		w.rep["cp-1"].cut = false
	})
	w.boot()
	return w.finish(45 * time.Second)
}

// toldLate: cp-3 is removed, and the history says so some time later.
func toldLate(late time.Duration) []history.Event {
	w := newWorld(3, "1")
	w.at(9*time.Second, func(w *world) { w.stopReporter("cp-3") })
	w.at(10*time.Second, func(w *world) { w.nodes = []string{"cp-1", "cp-2"} }).at(10*time.Second+late, func(w *world) { w.expect() })
	w.boot()
	return w.finish(25 * time.Second)
}

// clockBehind is a node whose clock is two seconds behind for a while, which the history tells or does not.
func clockBehind(configured bool) []history.Event {
	return faulty(func(w *world) {
		set := func(ahead time.Duration) func(*world) {
			return func(w *world) {
				if configured {
					w.record("backend", &history.Clock{Node: "cp-1", Ahead: ahead})
				}
			}
		}
		w.at(10*time.Second, set(-2*time.Second)).at(20*time.Second, set(0))
		w.bad.entries = func(w *world, node string, entries []facts.WireEntry) []facts.WireEntry {
			if d := w.now.Sub(w.start); node == "cp-1" && d > 10*time.Second && d < 20*time.Second {
				for i := range entries {
					at, _ := time.Parse(time.RFC3339Nano, entries[i].LastChecked)
					entries[i].LastChecked = contract.FormatTime(at.Add(-2 * time.Second))
				}
			}
			return entries
		}
	}, "")
}

// coldStart: one reporter comes within its grace, one after it.
func coldStart(change func(*world)) []history.Event {
	w := newWorld(3, "1")
	w.at(2*time.Second, func(w *world) { w.startReporter("cp-2") }).at(15*time.Second, func(w *world) { w.startReporter("cp-3") })
	if change != nil {
		change(w)
	}
	w.boot("cp-2", "cp-3")
	return w.finish(30 * time.Second)
}

func disabled(change func(*world)) []history.Event {
	w := newWorld(3, "1")
	if change != nil {
		change(w)
	}
	w.at(10*time.Second, func(w *world) {
		w.active = false
		for _, n := range w.nodes {
			w.stopReporter(n)
		}
		w.expect()
	})
	w.boot()
	return w.finish(25 * time.Second)
}

func TestGoodHistoriesPass(t *testing.T) {
	all := fine()
	maps.Copy(all, fineStreams())
	for name, build := range all {
		t.Run(name, func(t *testing.T) {
			if v := Run(build()); !v.OK {
				t.Error(printed(t, v))
			}
		})
	}
}

// TestGoodHistoriesAreJudged: what must have been looked at in a history with a fault.
func TestGoodHistoriesAreJudged(t *testing.T) {
	v := Run(fine()["error"]())
	skip := "STREAM-TRUTH ABSENCE-IS-NOT-BROKEN NO-ORPHAN NO-RESURRECTION UID NO-DATA-LOSS SWITCH-ORDER OPERATOR-CONVERGENCE ENCRYPTED CONDITION-ENDS AGREEMENT AGREEMENT-DEGRADED AGREEMENT-PRUNED STALE-UNKNOWN NOTHING-SECRET NO-FORGED-EXCUSE"
	for _, r := range v.Invariants {
		if r.Status != Passed && !strings.Contains(skip, r.ID) {
			t.Errorf("%s is %s", r.ID, r.Status)
		}
	}
	if v.Detection.Count != 1 || v.Recovery.Count != 1 || v.Detection.Max > 2*time.Second {
		t.Errorf("detection %v, recovery %v", v.Detection, v.Recovery)
	}
}

// TestVerdictNamesTheOperatorUnderTest: one that is this project's is not named.
func TestVerdictNamesTheOperatorUnderTest(t *testing.T) {
	for name, want := range map[string]string{"": "model on model: ", "o:dev": `model on model with operator "o:dev": `} {
		w := newWorld(1, "1")
		w.run.OperatorUnderTest.Name = name
		w.boot()
		if v := Run(w.finish(2 * time.Second)); v.Operator != name || !strings.HasPrefix(printed(t, v), want) {
			t.Errorf("operator %q: %.200s", v.Operator, printed(t, v))
		}
	}
}

func printed(t *testing.T, v Verdict) string {
	t.Helper()
	var b strings.Builder
	if err := Print(&b, v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestAnAggregatorThatShowsItselfIsJudged: a write after its start proves that it is in charge, long before the
// takeover allowance is over; a short run is not judged by nothing.
func TestAnAggregatorThatShowsItselfIsJudged(t *testing.T) {
	w := newWorld(3, "1")
	w.run.TakeoverAllowance = time.Minute
	w.at(2*time.Second, func(w *world) { w.fault("cp-2/1", "error") }).at(5*time.Second, func(w *world) { w.fault("cp-2/1", "") })
	w.boot()
	v := Run(w.finish(8 * time.Second))
	for _, id := range []string{"DETECTION", "RECOVERY", "ROLLUP-TRUTH", "UNION", "CONVERGENCE"} {
		if statusOf(v, id) != Passed {
			t.Errorf("%s is %s", id, statusOf(v, id))
		}
	}
}

// keyAskedFor: while the plugin of cp-2 refuses connections, the API server of node wants a key opened and gets nowhere.
func keyAskedFor(node string) []history.Event {
	return faulty(func(w *world) {
		w.at(5*time.Second, func(w *world) {
			c := encryptCall("u1")
			c.Began = w.now
			w.record("test", envelope("kube-apiserver", "u1"))
			w.record("test", c)
		})
		w.at(15*time.Second, func(w *world) {
			w.record("test", &history.Envelope{Hop: "kube-apiserver", Op: "decrypt", UID: "u2", Node: node, Object: "/registry/secrets/ns/a", OK: true})
		})
	}, "refuse")
}

// decryptGivenUp: a Decrypt of cp-1 fails, and the API server of node has logged another one a moment before, which no plugin got.
func decryptGivenUp(node string) []history.Event {
	return faulty(func(w *world) {
		w.at(15*time.Second, func(w *world) {
			w.record("test", &history.Envelope{Hop: "kube-apiserver", Op: "decrypt", UID: "u1", Node: "cp-1", OK: true})
			w.record("test", &history.Envelope{Hop: "kube-apiserver", Op: "decrypt", UID: "u2", Node: node, OK: true})
			w.record("test", &history.Call{Node: "cp-1", KeyID: "1", Method: "Decrypt", UID: "u1", Began: w.now, Outcome: "failed", Code: "FailedPrecondition"})
		})
	}, "")
}

// aggregatorStill: the aggregator does nothing for a while, in which a plugin fails.
func aggregatorStill(state string) func() []history.Event {
	return func() []history.Event {
		const s = time.Second
		w := newWorld(3, "1")
		w.at(10*s, func(w *world) { w.agg.paused = true; w.process(history.RoleAggregator, "", "", state) })
		w.at(12*s, func(w *world) { w.fault("cp-1/1", "error") })
		w.at(25*s, func(w *world) {
			w.agg.paused = false
			w.process(history.RoleAggregator, "", "", history.ProcessResumed)
		})
		w.at(35*s, func(w *world) { w.fault("cp-1/1", "") })
		w.boot()
		return w.finish(50 * s)
	}
}
