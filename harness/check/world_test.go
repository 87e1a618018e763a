package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/history"
)

// world is a small model of a control plane with reporters and an aggregator, advanced in steps of 50 ms, that
// records a history. It is written apart from the checker's own rules, as naively as can be. Its hooks make it wrong.
type world struct {
	log     *history.Log
	run     history.Run
	start   time.Time
	now     time.Time
	nodes   []string
	keyIDs  []string
	active  bool
	plugins map[string]*fakePlugin
	rep     map[string]*fakeReporter
	agg     fakeAggregator
	conds   []*history.Condition
	typed   []contract.TypedReport
	rv      int
	script  map[time.Duration]func(*world)
	since   map[string]time.Time
	bad     hooks
	uid     int
	pending []pendingWrite
}

// hooks are the deliberate defects.
type hooks struct {
	table    func(w *world, t map[string]facts.Value, message *string)          // falsifies the rollups
	entries  func(w *world, node string, e []facts.WireEntry) []facts.WireEntry // falsifies a report
	message  func(string) string                                                // falsifies its text
	request  func(w *world, r *history.Request)                                 // falsifies a write as logged
	noClean  bool                                                               // forgets gone nodes
	chatty   bool                                                               // the aggregator writes although nothing changed
	period   time.Duration                                                      // of the reporters
	union    func([]*history.Condition) []*history.Condition                    // falsifies the ClusterOperator
	noProbe  func(node string) bool                                             // reports without asking the plugin
	lastTime func(n int) string                                                 // falsifies lastTransitionTime
	fight    bool                                                               // removes an orphan at once, again and again
	meddle   bool                                                               // the aggregator touches a foreign condition
	owners   func(map[string][]string)
	steady   bool // reporters without jitter
	seizes   bool // the aggregator writes the ClusterOperator that is left to an operator
}

type fakePlugin struct {
	fault string // "", unhealthy, error, hang, down, refuse
	kek   string
}

type fakeReporter struct {
	cut     bool // its writes do not arrive
	running bool
	paused  bool
	next    time.Time
	writes  int
}

type fakeAggregator struct {
	running, paused bool
	missing         map[string]time.Time
	activeSince     time.Time
	lastSaid        string
}

func said(status, reason string) facts.Value { return facts.Value{Status: status, Reason: reason} }

func wire(keyID, kekID, status, lastChecked, detail string) facts.WireEntry {
	return facts.WireEntry{KeyID: keyID, KEKID: kekID, Status: status, LastChecked: lastChecked, Detail: detail}
}

const step = 50 * time.Millisecond

func newWorld(nodes int, keyIDs ...string) *world {
	start := time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
	w := &world{log: history.NewLog(nil), start: start, now: start, keyIDs: keyIDs, active: true, plugins: map[string]*fakePlugin{},
		rep: map[string]*fakeReporter{}, script: map[time.Duration]func(*world){}, since: map[string]time.Time{}}
	w.run = history.Run{Schema: history.Schema, Scenario: "model", Backend: "model", Reproduce: "kmsharness run model.yaml", Contract: "conditions",
		Operator: "kubeapiservers", ClusterOperator: "kube-apiserver", Tolerance: 200 * time.Millisecond, TakeoverAllowance: time.Second,
		Timing: contract.Timing{Interval: time.Second, Jitter: 100 * time.Millisecond, ProbeTimeout: 500 * time.Millisecond, WriteTimeout: time.Second, AggregatorLatency: time.Second}}
	for i := range nodes {
		w.nodes = append(w.nodes, fmt.Sprintf("cp-%d", i+1))
	}
	w.bad.period = time.Second
	return w
}

func (w *world) at(d time.Duration, f func(*world)) *world {
	if before := w.script[d]; before != nil {
		w.script[d] = func(w *world) { before(w); f(w) }
	} else {
		w.script[d] = f
	}
	return w
}

// boot records the state of an environment that runs already.
func (w *world) boot(stopped ...string) {
	run := w.run
	w.record("engine", &run)
	w.record("engine", &history.Phase{Name: history.PhaseBefore})
	for i, n := range w.nodes {
		w.since[n] = w.start.Add(-time.Hour)
		w.process(history.RoleAPIServer, n, "", history.ProcessReady)
		for _, k := range w.keyIDs {
			w.plugins[n+"/"+k] = &fakePlugin{kek: "kek-1"}
			w.process(history.RolePlugin, n, k, history.ProcessReady)
		}
		w.rep[n] = &fakeReporter{}
		if !strings.Contains(strings.Join(stopped, " "), n) {
			w.startReporter(n)
			w.rep[n].next = w.now.Add(time.Duration(i) * 200 * time.Millisecond)
		}
	}
	w.conds = append(w.conds, &history.Condition{Type: "StaticPodsDegraded", Status: "False", Reason: "AsExpected", LastTransitionTime: stamp(w.start)})
	if !strings.Contains(strings.Join(stopped, " "), "aggregator") {
		w.startAggregator()
	}
	w.expect()
	w.publish("boot", w.now)
}

// record records a payload. A program that is paused, or ended on request, has an action behind it.
func (w *world) record(source string, payload any) {
	p, ok := payload.(*history.Process)
	verbs := map[string]string{history.ProcessPaused: "pause", history.ProcessSilenced: "silence", history.ProcessStopped: "end", history.ProcessKilled: "end"}
	if !ok || !facts.UnderTest(p.Role) || verbs[p.State] == "" {
		w.log.Record(w.now, source, payload)
		return
	}
	w.uid++
	for _, state := range []string{history.ActionBegan, history.ActionDone} {
		w.log.Record(w.now, "engine", &history.Action{ID: fmt.Sprintf("steps[%d]", w.uid), Verb: verbs[p.State], Target: "process " + p.Role + "/" + p.Node, State: state})
		if state == history.ActionBegan {
			w.log.Record(w.now, source, payload)
		}
	}
}

func (w *world) process(role, node, keyID, state string) {
	w.record("backend", &history.Process{Role: role, Node: node, KeyID: keyID, State: state})
}

func (w *world) expect() {
	x := &history.Expected{KMSActive: w.active}
	for _, n := range w.nodes {
		x.Nodes = append(x.Nodes, history.ExpectedNode{Name: n, Since: w.since[n].Truncate(time.Second), KeyIDs: w.keyIDs})
	}
	w.record("backend", x)
}

func (w *world) startReporter(n string) {
	w.process(history.RoleReporter, n, "", history.ProcessStarted)
	w.process(history.RoleReporter, n, "", history.ProcessReady)
	w.rep[n].running, w.rep[n].next = true, w.now.Add(step)
}

func (w *world) stopReporter(n string) {
	w.rep[n].running = false
	w.process(history.RoleReporter, n, "", history.ProcessStopped)
}

func (w *world) pauseReporter(n string, paused bool) {
	w.rep[n].paused = paused
	w.process(history.RoleReporter, n, "", map[bool]string{true: history.ProcessPaused, false: history.ProcessResumed}[paused])
}

func (w *world) startAggregator() {
	w.process(history.RoleAggregator, "", "", history.ProcessStarted)
	w.process(history.RoleAggregator, "", "", history.ProcessReady)
	w.agg = fakeAggregator{running: true, missing: map[string]time.Time{}, activeSince: w.now}
	if _, standing := w.cond(contract.ConditionDegraded); standing {
		w.agg.activeSince = time.Time{}
	}
}

func (w *world) killAggregator() {
	w.agg.running = false
	w.process(history.RoleAggregator, "", "", history.ProcessKilled)
}

func (w *world) fault(p, fault string) {
	id := fmt.Sprintf("steps[%d]", w.uid)
	w.uid++
	verb := "inject"
	if fault == "" {
		verb = "release"
	}
	a := history.Action{ID: id, Verb: verb, Target: "plugin " + p, State: history.ActionBegan}
	if fault != "" {
		a.Params = map[string]any{"fault": fault}
	}
	done := a
	done.State = history.ActionDone
	w.record("engine", &a)
	node, key, _ := strings.Cut(p, "/")
	switch {
	case fault == "down":
		w.process(history.RolePlugin, node, key, history.ProcessKilled)
	case w.plugins[p].fault == "down":
		w.process(history.RolePlugin, node, key, history.ProcessStarted)
		w.process(history.RolePlugin, node, key, history.ProcessReady)
	}
	w.plugins[p].fault = fault
	w.record("engine", &done)
}

func (w *world) act() {
	w.record("engine", &history.Action{ID: "wait", Verb: "wait", State: history.ActionDone})
}

// finish runs the clock until d and closes the history.
func (w *world) finish(d time.Duration) []history.Event {
	for w.now.Sub(w.start) < d {
		w.now = w.now.Add(step)
		if f := w.script[w.now.Sub(w.start)]; f != nil {
			f(w)
		}
		for _, n := range slices.Sorted(maps.Keys(w.rep)) {
			w.tick(n)
		}
		w.deliver()
		w.now = w.now.Add(step / 2)
		w.aggregate()
		w.now = w.now.Add(-step / 2)
	}
	w.act()
	w.record("engine", &history.Expectation{ID: "expect", Mode: "holds", Text: "true", OK: true})
	w.record("engine", &history.Phase{Name: history.PhaseEnd})
	w.record("engine", &history.End{Complete: true})
	return w.log.Events()
}

func (w *world) tick(n string) {
	r := w.rep[n]
	if !r.running || r.paused || w.now.Before(r.next) {
		return
	}
	for !r.next.After(w.now) {
		r.next = r.next.Add(w.bad.period)
	}
	r.writes++
	if !w.bad.steady {
		r.next = r.next.Add([]time.Duration{0, step, -step}[r.writes%3])
	}
	var entries []facts.WireEntry
	took := 10 * time.Millisecond
	for _, k := range w.keyIDs {
		e, t := w.probe(n, k)
		entries, took = append(entries, e), max(took, t)
	}
	if w.bad.entries != nil {
		entries = w.bad.entries(w, n, entries)
	}
	if entries != nil {
		w.pending = append(w.pending, pendingWrite{w.now.Add(took), n, entries})
	}
}

// probe is what the plugin answers, journalled.
func (w *world) probe(n, k string) (facts.WireEntry, time.Duration) {
	p := w.plugins[n+"/"+k]
	e := facts.WireEntry{KeyID: k, KEKID: p.kek, Status: "healthy", LastChecked: contract.FormatTime(w.now)}
	c := &history.Call{Node: n, KeyID: k, Method: "Status", Began: w.now, Outcome: "ok", Code: "OK", Healthz: "ok", Version: "v2", KEKID: p.kek}
	took := 5 * time.Millisecond
	switch p.fault {
	case "unhealthy":
		c.Healthz, c.Faults = "vault is sealed\n", []string{"unhealthy"}
		e.Status, e.Detail = "unhealthy", "vault is sealed"
	case "error":
		c.Outcome, c.Code, c.Healthz, c.KEKID, c.Version, c.Faults = "error", "FailedPrecondition", "", "", "", []string{"error"}
		e.Status, e.KEKID, e.Detail = "error", "", "FailedPrecondition: key disabled"
	case "hang":
		took, c.Outcome, c.Code, c.Healthz, c.KEKID, c.Version, c.Faults = 500*time.Millisecond, "abandoned", "DeadlineExceeded", "", "", "", []string{"hang"}
		e.Status, e.KEKID, e.Detail = "error", "", "DeadlineExceeded: context deadline exceeded"
	case "down", "refuse":
		c = nil
		e.Status, e.KEKID, e.Detail = "error", "", "Unavailable: connection refused"
	}
	if c != nil && (w.bad.noProbe == nil || !w.bad.noProbe(n)) {
		c.Ended = w.now.Add(took)
		c.Took = took
		w.log.Record(c.Ended, "journal", c)
	}
	return e, took
}

type pendingWrite struct {
	due     time.Time
	node    string
	entries []facts.WireEntry
}

// deliver lets the writes arrive that are due.
func (w *world) deliver() {
	var later []pendingWrite
	for _, p := range w.pending {
		switch {
		case p.due.After(w.now) || w.rep[p.node].paused:
			later = append(later, p)
		case w.rep[p.node].running && !w.rep[p.node].cut:
			w.write(p.node, p.entries)
		}
	}
	w.pending = later
}

func (w *world) write(n string, entries []facts.WireEntry) {
	message := encode(entries)
	if w.bad.message != nil {
		message = w.bad.message(message)
	}
	c := history.Condition{Type: contract.ConditionType(n), Status: "True", Reason: "AsExpected", Message: message, LastTransitionTime: stamp(w.start)}
	if w.bad.lastTime != nil {
		c.LastTransitionTime = w.bad.lastTime(w.rep[n].writes)
	}
	body := map[string]any{"conditions": []history.Condition{c}}
	if w.run.Contract == "healthreports" {
		items := typedItems(n, entries)
		body = map[string]any{"encryptionStatus": map[string]any{"healthReports": items}}
		kept := w.typed[:0:0]
		for _, t := range w.typed {
			if t.NodeName != n {
				kept = append(kept, t)
			}
		}
		w.typed = append(kept, items...)
	} else {
		w.set(c)
	}
	w.submit(contract.ReporterIdentity(n), contract.FieldManager(n), map[string]any{"apiVersion": "operator.openshift.io/v1", "status": body})
}

func typedItems(n string, entries []facts.WireEntry) []contract.TypedReport {
	var out []contract.TypedReport
	for _, e := range entries {
		if e.KEKID == "" {
			e.KEKID = contract.UnknownKEKID
		}
		out = append(out, contract.TypedReport{NodeName: n, KeyID: e.KeyID, Status: strings.ToUpper(e.Status[:1]) + e.Status[1:], LastCheckedTime: e.LastChecked, RemoteKeyID: e.KEKID, Detail: e.Detail})
	}
	return out
}

// encode writes the contract's JSON by hand.
func encode(entries []facts.WireEntry) string {
	var parts []string
	for _, e := range entries {
		s := `{"keyID":` + quote(e.KeyID)
		if e.KEKID != "" {
			s += `,"kekID":` + quote(e.KEKID)
		}
		s += `,"status":` + quote(e.Status) + `,"lastChecked":` + quote(e.LastChecked)
		if e.Detail != "" {
			s += `,"detail":` + quote(e.Detail)
		}
		parts = append(parts, s+"}")
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// submit logs a request that changed the CR and shows its new state.
func (w *world) submit(user, manager string, body map[string]any) {
	w.rv++
	text, _ := json.Marshal(body)
	r := &history.Request{User: user, Verb: "patch", Resource: "kubeapiservers.operator.openshift.io", Subresource: "status", Name: "cluster", FieldManager: manager,
		ContentType: "application/apply-patch+yaml", Force: true, Code: 200, Received: w.now, Completed: w.now.Add(2 * time.Millisecond), Body: text, ResourceVersion: fmt.Sprint(w.rv)}
	if w.bad.request != nil {
		w.bad.request(w, r)
	}
	w.log.Record(r.Completed, "audit", r)
	w.publish(fmt.Sprint(w.rv), w.now.Add(time.Millisecond))
}

func (w *world) publish(rv string, at time.Time) {
	o := &history.Object{Resource: "kubeapiservers.operator.openshift.io", Name: "cluster", ResourceVersion: rv, Owners: map[string][]string{},
		Conditions: append([]*history.Condition(nil), w.conds...)}
	for _, t := range w.typed {
		o.HealthReports = append(o.HealthReports, &t)
	}
	for _, c := range w.conds {
		if n, ok := contract.NodeOfCondition(c.Type); ok {
			o.Owners["condition/"+c.Type] = []string{contract.FieldManager(n)}
		}
	}
	if w.bad.owners != nil {
		w.bad.owners(o.Owners)
	}
	w.log.Record(at, "watch", o)
}

func (w *world) cond(t string) (history.Condition, bool) {
	for _, c := range w.conds {
		if c.Type == t {
			return *c, true
		}
	}
	return history.Condition{}, false
}

func (w *world) set(c history.Condition) {
	w.conds = append([]*history.Condition(nil), w.conds...)
	for i := range w.conds {
		if w.conds[i].Type == c.Type {
			w.conds[i] = &c
			return
		}
	}
	w.conds = append(w.conds, &c)
}

func (w *world) remove(t string) {
	var kept []*history.Condition
	for _, c := range w.conds {
		if c.Type != t {
			kept = append(kept, c)
		}
	}
	w.conds = kept
}

// says is the entries that stand about a node.
func (w *world) says(n string) (entries []facts.Entry, ok bool) {
	if c, found := w.cond(contract.ConditionType(n)); found {
		entries, _ = facts.DecodeMessage(c.Message)
		ok = true
	}
	for _, t := range w.typed {
		if t.NodeName == n {
			e, _ := facts.DecodeTyped(t)
			entries, ok = append(entries, e), true
		}
	}
	return entries, ok
}

// aggregate is one step of the aggregator.
func (w *world) aggregate() {
	if !w.agg.running || w.agg.paused {
		return
	}
	w.clean()
	if !w.active {
		for _, t := range contract.RollupTypes() {
			if _, ok := w.cond(t); ok && !w.bad.noClean {
				w.remove(t)
				w.submit(contract.AggregatorIdentity, contract.AggregatorFieldManager, map[string]any{"status": map[string]any{}})
			}
		}
		return
	}
	want, message := w.table()
	if w.bad.table != nil {
		w.bad.table(w, want, &message)
	}
	said := fmt.Sprint(want, message)
	if said == w.agg.lastSaid && !w.bad.chatty {
		return
	}
	w.agg.lastSaid = said
	for _, t := range slices.Sorted(maps.Keys(want)) {
		c := history.Condition{Type: t, Status: want[t].Status, Reason: want[t].Reason, LastTransitionTime: stamp(w.start)}
		if t == contract.ConditionDegraded {
			c.Message = message
		}
		w.set(c)
	}
	if w.bad.meddle {
		w.set(history.Condition{Type: "StaticPodsDegraded", Status: "False", Reason: "Meddled", LastTransitionTime: stamp(w.start)})
	}
	w.submit(contract.AggregatorIdentity, contract.AggregatorFieldManager, map[string]any{"status": map[string]any{"conditions": []*history.Condition{{Type: contract.ConditionDegraded}}}})
	w.unite(want, message)
}

func (w *world) clean() {
	if w.bad.noClean {
		return
	}
	for _, n := range slices.Sorted(maps.Keys(w.rep)) {
		if w.active && w.expected(n) {
			continue
		}
		entries, ok := w.says(n)
		fresh := len(entries) > 0 && w.now.Sub(entries[0].Checked) < 4*time.Second
		if !ok || !w.bad.fight && fresh && w.removedOnce(n) {
			continue
		}
		w.agg.missing["removed "+n] = w.now
		w.remove(contract.ConditionType(n))
		var kept []contract.TypedReport
		for _, t := range w.typed {
			if t.NodeName != n {
				kept = append(kept, t)
			}
		}
		w.typed = kept
		w.submit(contract.AggregatorIdentity, contract.AggregatorFieldManager, nil)
	}
}

func (w *world) removedOnce(n string) bool { return !w.agg.missing["removed "+n].IsZero() }

func (w *world) expected(n string) bool {
	for _, x := range w.nodes {
		if x == n {
			return true
		}
	}
	return false
}

func (w *world) unite(want map[string]facts.Value, message string) {
	d := want[contract.ConditionDegraded]
	co := []*history.Condition{{Type: "Degraded", Status: d.Status, Reason: "x", Message: contract.ConditionDegraded + ": " + message},
		{Type: "Available", Status: want[contract.ConditionAvailable].Status, Message: contract.ConditionAvailable + ": x"},
		{Type: "Progressing", Status: want[contract.ConditionProgressing].Status, Message: contract.ConditionProgressing + ": x"}}
	if w.bad.union != nil {
		co = w.bad.union(co)
	}
	w.rv++
	user := contract.AggregatorIdentity
	if w.run.Union.Leave && !w.bad.seizes {
		user = "operator"
	}
	w.log.Record(w.now.Add(3*time.Millisecond), "audit", &history.Request{ResourceVersion: fmt.Sprint(w.rv), User: user, Verb: "patch", Resource: "clusteroperators.config.openshift.io", Subresource: "status",
		Name: "kube-apiserver", FieldManager: contract.AggregatorFieldManager, Code: 200, Received: w.now, Completed: w.now.Add(3 * time.Millisecond)})
	w.log.Record(w.now.Add(3*time.Millisecond), "watch", &history.Object{Resource: "clusteroperators.config.openshift.io", Name: "kube-apiserver", ResourceVersion: fmt.Sprint(w.rv), Conditions: co})
}

// table is the contract's table, for the reports of one form, row by row.
func (w *world) table() (map[string]facts.Value, string) {
	out := map[string]facts.Value{contract.ConditionDegraded: said("False", "AsExpected"), contract.ConditionAvailable: said("True", "AsExpected"), contract.ConditionProgressing: said("False", "AsExpected")}
	var unhealthy, broken, stale, missing, awaiting []string
	keks, keys, settled := map[string]bool{}, map[string]bool{}, true
	for _, n := range w.nodes {
		entries, ok := w.says(n)
		if !ok {
			settled = false
			from := w.since[n]
			for _, t := range []time.Time{w.agg.missing[n], w.agg.activeSince} {
				if t.After(from) {
					from = t
				}
			}
			if w.now.Sub(from) > 4*time.Second {
				missing = append(missing, n)
			} else {
				awaiting = append(awaiting, n)
			}
			continue
		}
		w.agg.missing[n] = w.now
		isStale := false
		for i, e := range entries {
			if w.now.Sub(e.Checked) > 4*time.Second {
				isStale, settled = true, false
				continue
			}
			keys[e.KeyID] = true
			if e.KEKID != "" {
				keks[e.KeyID+"="+e.KEKID] = true
			}
			switch e.Status {
			case contract.StatusUnhealthy:
				unhealthy = append(unhealthy, n+"/"+e.KeyID)
			case contract.StatusError:
				broken = append(broken, n+"/"+e.KeyID)
			}
			if i == 0 && e.Status != contract.StatusHealthy {
				settled = false
				out[contract.ConditionAvailable] = said("False", "NoUsableWriteKey")
			}
		}
		if isStale {
			stale = append(stale, n)
		}
	}
	if out[contract.ConditionAvailable].Status == "True" && len(stale)+len(missing) > 0 {
		out[contract.ConditionAvailable] = said("Unknown", "WriteKeyUnknown")
	}
	switch {
	case len(unhealthy) > 0:
		out[contract.ConditionDegraded] = said("True", "PluginUnhealthy")
	case len(broken) > 0:
		out[contract.ConditionDegraded] = said("True", "PluginUnreachable")
	case len(stale) > 0:
		out[contract.ConditionDegraded] = said("Unknown", "ReportStale")
	case len(missing) > 0:
		out[contract.ConditionDegraded] = said("Unknown", "ReportMissing")
	case len(awaiting) > 0:
		out[contract.ConditionDegraded] = said("False", "AwaitingFirstReport")
	}
	switch {
	case len(keks) > len(keys):
		out[contract.ConditionProgressing] = said("True", "KEKRotationInProgress")
	case len(keys) > 1:
		out[contract.ConditionProgressing] = said("True", "KeyMigrationInProgress")
	case !settled:
		out[contract.ConditionProgressing] = said("False", "NotConverged")
	}
	var all []string
	for _, list := range [][]string{unhealthy, broken, stale, missing, awaiting} {
		all = append(all, list...)
	}
	sort.Strings(all)
	return out, strings.Join(all, ": bad\n")
}
