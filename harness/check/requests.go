package check

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// request is a request of the audit log, digested.
type request struct {
	*history.Request
	at       time.Time
	seq      int64
	received time.Time
	node     string // whose reporter sent it, or had it sent by an aggregator that it streams to; empty for others
	relayed  bool   // it was sent by an aggregator
	onCR     bool
	write    bool
	body     body
}

// body is what an apply says; ok is false where the audit log kept none or it is not an object.
type body struct {
	ok         bool
	conditions []wireCondition
	typed      []contract.TypedReport
	other      []string // fields of the object or its status that are none of these
}

type wireCondition struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

type requestFacts struct {
	facts      *Facts
	all        []request
	byRV       map[string]int     // index of the write (to CR or ClusterOperator) that made a resourceVersion
	writes     map[string][]write // by node
	requestsOf map[string][]int   // by node
}

func (rq *requestFacts) read() {
	count := 0
	for n := range rq.facts.events {
		if rq.facts.events[n].Kind == history.KindRequest {
			count++
		}
	}
	rq.all = make([]request, 0, count)
	rq.byRV, rq.facts.objects.seenRV, rq.requestsOf, rq.writes = map[string]int{}, map[string]bool{}, map[string][]int{}, map[string][]write{}
	for n := range rq.facts.events {
		e := &rq.facts.events[n]
		if e.Kind != history.KindRequest {
			continue
		}
		r := request{Request: e.Request, at: e.At, seq: e.Seq, received: e.Request.Received}
		if r.received.IsZero() {
			r.received = e.At
		}
		r.node, r.relayed = r.Reporter(), r.ReportOf != ""
		r.onCR = rq.facts.isCR(r.Resource, r.Name)
		r.write = isWrite(r.Verb)
		if r.write && r.ours() {
			r.body = readBody(r.Request.Body)
		}
		if (r.onCR || rq.facts.isClusterOperator(r.Resource, r.Name)) && r.write && r.succeeded() && r.ResourceVersion != "" {
			if _, seen := rq.byRV[r.ResourceVersion]; !seen { // a later one with this version changed nothing
				rq.byRV[r.ResourceVersion] = len(rq.all)
			}
		}
		if r.node != "" {
			rq.requestsOf[r.node] = append(rq.requestsOf[r.node], len(rq.all))
		}
		rq.all = append(rq.all, r)
	}
	for n := range rq.facts.events {
		e := &rq.facts.events[n]
		if e.Kind == history.KindObject && rq.facts.isCR(e.Object.Resource, e.Object.Name) {
			rq.facts.objects.seenRV[e.Object.ResourceVersion] = true
		}
	}
}

func isWrite(verb string) bool {
	switch verb {
	case "create", "update", "patch", "apply", "delete", "deletecollection":
		return true
	}
	return false
}

func (r request) succeeded() bool { return r.Code >= 200 && r.Code < 300 }

// undecided: the API server gave up on the request, or its client did, and it may have taken effect all the same: etcd
// does not take back what it has committed.
func (r request) undecided() bool {
	return r.Code == 0 || r.Code == 408 || r.Code == 499 || r.Code >= 500
}

// aggregator reports whether an aggregator sent r in its own name.
func (r request) aggregator() bool { return r.User == contract.AggregatorIdentity && r.node == "" }
func (r request) ours() bool       { return r.node != "" || r.aggregator() }

// isApply: force is an option of an apply only, and is logged even for a request that was refused unread.
func (r request) isApply() bool {
	return r.Verb == "apply" || r.Force || strings.HasPrefix(r.ContentType, "application/apply-patch")
}

// writer names who sent r, for people.
func (r request) writer() string {
	return r.User + " (field manager " + quoted(r.FieldManager) + ")"
}

func readBody(text json.RawMessage) body {
	var object map[string]json.RawMessage
	if len(text) == 0 || json.Unmarshal(text, &object) != nil {
		return body{}
	}
	b := body{ok: true}
	for _, k := range sortedKeys(object) {
		switch k {
		case "apiVersion", "kind", "metadata":
		case "status":
			b.readStatus(object[k], "status")
		default:
			b.other = append(b.other, k)
		}
	}
	return b
}

func (b *body) readStatus(text json.RawMessage, path string) {
	var status map[string]json.RawMessage
	if json.Unmarshal(text, &status) != nil {
		b.ok = false
		return
	}
	for _, k := range sortedKeys(status) {
		switch k {
		case "conditions":
			b.ok = json.Unmarshal(status[k], &b.conditions) == nil && b.ok
		case "healthReports":
			b.ok = json.Unmarshal(status[k], &b.typed) == nil && b.ok
		case "encryptionStatus", "oauthAPIServer":
			b.readStatus(status[k], path+"."+k)
		default:
			b.other = append(b.other, path+"."+k)
		}
	}
}

// reportOf is the entries that the body says about node.
func (b body) reportOf(node string) []entry {
	var message, typed []entry
	for _, c := range b.conditions {
		if c.Type == contract.ConditionType(node) {
			message, _ = decodeMessage(c.Message)
		}
	}
	for _, t := range b.typed {
		if e, problem := decodeTyped(t); problem == "" && t.NodeName == node {
			typed = append(typed, e)
		}
	}
	return newest(message, typed)
}

// has reports whether the body has the entry of node, whatever it says.
func (b body) has(node string) bool {
	return slices.ContainsFunc(b.conditions, func(c wireCondition) bool { return c.Type == contract.ConditionType(node) }) ||
		slices.ContainsFunc(b.typed, func(t contract.TypedReport) bool { return t.NodeName == node })
}

// foreignTo is what the body touches beyond the entry of node, empty if nothing.
func (b body) foreignTo(node string) []string {
	out := append([]string(nil), b.other...)
	for _, c := range b.conditions {
		if c.Type != contract.ConditionType(node) {
			out = append(out, "condition "+quoted(c.Type))
		}
	}
	for _, t := range b.typed {
		if t.NodeName != node {
			out = append(out, "report of node "+quoted(t.NodeName))
		}
	}
	return out
}

// explaining is the writes to the CR, successful or of unknown outcome, that may have led from the state before i to state i: the one that
// made its resourceVersion, and those of about that time whose own state was not seen by itself.
func (rq *requestFacts) explaining(s snapshot, before time.Time) []request {
	if i, ok := rq.byRV[s.rv]; ok && s.rv != "" {
		return append([]request{rq.all[i]}, rq.unseenWrites(before, s.at)...)
	}
	return rq.unseenWrites(before, s.at)
}

func (rq *requestFacts) unseenWrites(from, to time.Time) []request {
	from, to = from.Add(-rq.facts.tolerance()), to.Add(rq.facts.tolerance())
	i := sort.Search(len(rq.all), func(i int) bool { return !rq.all[i].at.Before(from) })
	var out []request
	for ; i < len(rq.all) && !rq.all[i].received.After(to.Add(time.Minute)); i++ {
		r := rq.all[i]
		if r.received.After(to) || !r.write || !r.onCR || !r.succeeded() && !r.undecided() {
			continue
		}
		if r.ResourceVersion == "" || !rq.facts.objects.seenRV[r.ResourceVersion] {
			out = append(out, r)
		}
	}
	return out
}

// writtenByOthers says whether a report was put there by somebody who is not the system under test, such as the
// harness playing a hostile or careless writer.
func (rq *requestFacts) writtenByOthers(s snapshot, node string, old *report) bool {
	i, ok := rq.byRV[s.rv]
	if !ok || s.rv == "" {
		return false
	}
	if r := rq.all[i]; r.node == node {
		return false
	} else if !r.ours() {
		return true
	}
	return old != nil && old.foreign
}

// write is one successful write of a report: when the API server received it and when it was done.
type write struct {
	from, to time.Time
	seq      int64
	entries  []entry
}

// writesOf is the successful writes of node's reporter, from the audit log; where there is none, from what changed
// on the CR.
func (rq *requestFacts) writesOf(node string) []write {
	if w, done := rq.writes[node]; done {
		return w
	}
	var out []write
	for i := range rq.requestsOf[node] {
		r := rq.all[rq.requestsOf[node][i]]
		if r.write && r.onCR && r.succeeded() {
			out = append(out, write{r.received, r.at, r.seq, r.body.reportOf(node)})
		}
	}
	if len(out) == 0 {
		for _, c := range rq.facts.objects.reports[node] {
			if c.rep != nil && !c.rep.foreign {
				out = append(out, write{c.at, c.at, c.seq, c.rep.entries})
			}
		}
	}
	rq.writes[node] = out
	return out
}

// landed is the writes of node's reporter that took effect: the successful ones, and those of unknown outcome whose report the CR shows.
func (rq *requestFacts) landed(node string) []write {
	out := slices.Clone(rq.writesOf(node))
	for _, i := range rq.requestsOf[node] {
		r := rq.all[i]
		if !r.write || !r.onCR || !r.undecided() {
			continue
		}
		entries := r.body.reportOf(node)
		shows := func(c reportChange) bool {
			return c.rep != nil && !c.rep.foreign && !c.at.Before(r.received) && slices.Equal(c.rep.entries, entries)
		}
		if len(entries) > 0 && slices.ContainsFunc(rq.facts.objects.reports[node], shows) {
			out = append(out, write{r.received, r.at, r.seq, entries})
		}
	}
	slices.SortStableFunc(out, func(a, b write) int { return a.to.Compare(b.to) })
	return out
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
