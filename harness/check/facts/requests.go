package facts

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Request is a request of the audit log, digested.
type Request struct {
	*history.Request
	At       time.Time // when the API server was done
	Seq      int64
	Received time.Time // At, where the audit log does not tell
	Node     string    // whose reporter sent it, or had it sent by an aggregator that it streams to; empty for others
	Relayed  bool      // it was sent by an aggregator
	OnCR     bool
	Write    bool
	Body     Body    // of a write of the system under test
	Entries  []Entry // of Body, about Node
}

// Body is what an apply says.
type Body struct {
	Known      bool // the audit log kept it, and it is an object
	Conditions []history.Condition
	Typed      []contract.TypedReport
	Other      []string // fields of the object or its status that are none of these
}

func (v *Facts) readRequests() {
	v.RequestsOf, v.TriedWrites, v.MadeBy, v.seen = map[string][]*Request{}, map[string][]*Request{}, map[string]*Request{}, map[string]bool{}
	for e := range v.Each(history.KindRequest, history.KindObject) {
		if e.Kind == history.KindObject {
			if v.isCR(e.Object.Resource, e.Object.Name) {
				v.seen[e.Object.ResourceVersion] = true
			}
			continue
		}
		r := &Request{Request: e.Request, At: e.At, Seq: e.Seq, Received: cmp.Or(e.Request.Received, e.At), Node: e.Request.Reporter(), Relayed: e.Request.ReportOf != "",
			OnCR: v.isCR(e.Request.Resource, e.Request.Name), Write: isWrite(e.Request.Verb)}
		if r.Write && r.UnderTest() {
			r.Body = readBody(r.Request.Body)
			r.Entries = r.Body.entries(r.Node)
		}
		if r.Write && r.Succeeded() && r.ResourceVersion != "" && v.MadeBy[r.ResourceVersion] == nil && (r.OnCR || v.IsClusterOperator(r.Resource, r.Name)) {
			v.MadeBy[r.ResourceVersion] = r // a later one with this version changed nothing
		}
		v.addRequest(r)
	}
}

func (v *Facts) addRequest(r *Request) {
	v.Requests = append(v.Requests, r)
	if r.Node == "" {
		return
	}
	v.RequestsOf[r.Node] = append(v.RequestsOf[r.Node], r)
	if r.Write && r.OnCR {
		v.TriedWrites[r.Node] = append(v.TriedWrites[r.Node], r)
	}
}

func isWrite(verb string) bool {
	return slices.Contains([]string{"create", "update", "patch", "apply", "delete", "deletecollection"}, verb)
}

// Succeeded reports whether the API server answered with 2xx.
func (r *Request) Succeeded() bool { return r.Code >= 200 && r.Code < 300 }

// Undecided: the API server gave up on the request, or its client did, and it may have taken effect all the same: etcd
// does not take back what it has committed.
func (r *Request) Undecided() bool {
	return r.Code == 0 || r.Code == http.StatusRequestTimeout || r.Code == 499 || r.Code >= 500
}

// ByAggregator reports whether an aggregator sent r in its own name.
func (r *Request) ByAggregator() bool { return r.User == contract.AggregatorIdentity && r.Node == "" }

// UnderTest reports whether a reporter or an aggregator sent r.
func (r *Request) UnderTest() bool { return r.Node != "" || r.ByAggregator() }

// IsApply: force is an option of an apply only, and is logged even for a request that was refused unread.
func (r *Request) IsApply() bool {
	return r.Verb == "apply" || r.Force || strings.HasPrefix(r.ContentType, "application/apply-patch")
}

// OwnEntry: exactly what the contract lets a reporter do. Discovery is not in it: a reporter knows what it writes.
func (r *Request) OwnEntry() bool {
	switch {
	case !r.OnCR || r.Name != "cluster":
		return false
	case r.Verb == "get":
		return r.Subresource == ""
	case r.Verb != "patch" && r.Verb != "apply" || r.Subresource != "status" || !r.IsApply():
		return false
	}
	return len(r.Body.ForeignTo(r.Node)) == 0
}

func readBody(object json.RawMessage) Body {
	var fields map[string]json.RawMessage
	if len(object) == 0 || json.Unmarshal(object, &fields) != nil {
		return Body{}
	}
	b := Body{Known: true}
	for _, k := range sortedKeys(fields) {
		switch k {
		case "apiVersion", "kind", "metadata":
		case "status":
			b.readStatus(fields[k], "status")
		default:
			b.Other = append(b.Other, k)
		}
	}
	return b
}

func (b *Body) readStatus(object json.RawMessage, path string) {
	var status map[string]json.RawMessage
	if json.Unmarshal(object, &status) != nil {
		b.Known = false
		return
	}
	for _, k := range sortedKeys(status) {
		switch k {
		case "conditions":
			b.Known = json.Unmarshal(status[k], &b.Conditions) == nil && b.Known
		case "healthReports":
			b.Known = json.Unmarshal(status[k], &b.Typed) == nil && b.Known
		case "encryptionStatus", "oauthAPIServer":
			b.readStatus(status[k], path+"."+k)
		default:
			b.Other = append(b.Other, path+"."+k)
		}
	}
}

// entries is what the body says about node.
func (b Body) entries(node string) []Entry {
	var message, typed []Entry
	for _, c := range b.Conditions {
		if c.Type == contract.ConditionType(node) {
			message, _ = DecodeMessage(c.Message)
		}
	}
	for _, t := range b.Typed {
		if e, problem := DecodeTyped(t); problem == "" && t.NodeName == node {
			typed = append(typed, e)
		}
	}
	return newest(message, typed)
}

// Has reports whether the body has the entry of node, whatever it says.
func (b Body) Has(node string) bool {
	return slices.ContainsFunc(b.Conditions, func(c history.Condition) bool { return c.Type == contract.ConditionType(node) }) ||
		slices.ContainsFunc(b.Typed, func(t contract.TypedReport) bool { return t.NodeName == node })
}

// ForeignTo is what the body touches beyond the entry of node, for people.
func (b Body) ForeignTo(node string) []string {
	return b.Beyond(func(conditionType string) bool { return conditionType == contract.ConditionType(node) }, node)
}

// Beyond is what the body touches beyond the conditions that own accepts and the typed reports of node, for people.
func (b Body) Beyond(own func(conditionType string) bool, node string) []string {
	out := slices.Clone(b.Other)
	for _, c := range b.Conditions {
		if !own(c.Type) {
			out = append(out, "condition "+text.Quoted(c.Type))
		}
	}
	for _, t := range b.Typed {
		if node == "" || t.NodeName != node {
			out = append(out, "report of node "+text.Quoted(t.NodeName))
		}
	}
	return out
}

// Explaining is the writes to the CR, successful or of unknown outcome, that may have led from the state before to s: the one that
// made its resourceVersion, and those of about that time whose own state was not seen by itself.
func (v *Facts) Explaining(s Snapshot, before time.Time) []*Request {
	unseen := v.unseenWrites(before, s.At)
	if r := v.MadeBy[s.Object.ResourceVersion]; r != nil {
		return append([]*Request{r}, unseen...)
	}
	return unseen
}

func (v *Facts) unseenWrites(from, to time.Time) (out []*Request) {
	from, to = from.Add(-v.Tolerance()), to.Add(v.Tolerance())
	i := sort.Search(len(v.Requests), func(i int) bool { return !v.Requests[i].At.Before(from) })
	for ; i < len(v.Requests) && !v.Requests[i].Received.After(to.Add(time.Minute)); i++ {
		r := v.Requests[i]
		if r.Write && r.OnCR && !r.Received.After(to) && (r.Succeeded() || r.Undecided()) && (r.ResourceVersion == "" || !v.seen[r.ResourceVersion]) {
			out = append(out, r)
		}
	}
	return out
}

// writtenByOthers reports whether a report was not written by the system under test, but for example by the
// harness in the part of a hostile or careless writer.
func (v *Facts) writtenByOthers(s Snapshot, node string, old *Report) bool {
	r := v.MadeBy[s.Object.ResourceVersion]
	switch {
	case r == nil || r.Node == node:
		return false
	case !r.UnderTest():
		return true
	}
	return old != nil && old.Foreign
}

// Write is one successful write of a report, from when the API server received it until it was done.
type Write struct {
	span.Span
	Seq     int64
	Entries []Entry
}

func writeOf(r *Request) Write {
	return Write{span.New(r.Received, r.At), r.Seq, r.Entries}
}

// Writes is the successful writes of node's reporter, from the audit log; where there is none, from what changed
// on the CR.
func (v *Facts) Writes(node string) []Write {
	if w, done := v.writes[node]; done {
		return w
	}
	var out []Write
	for _, r := range v.TriedWrites[node] {
		if r.Succeeded() {
			out = append(out, writeOf(r))
		}
	}
	if len(out) == 0 {
		for _, s := range v.OwnReports(node) {
			out = append(out, Write{span.New(s.From, s.From), s.Seq, s.Value.Entries})
		}
	}
	v.writes[node] = out
	return out
}

// Landed is the writes of node's reporter that took effect: the successful ones, and those of unknown outcome whose report the CR shows.
func (v *Facts) Landed(node string) []Write {
	out := slices.Clone(v.Writes(node))
	for _, r := range v.TriedWrites[node] {
		if !r.Undecided() {
			continue
		}
		w := writeOf(r)
		shows := func(s State[Report]) bool {
			return !s.From.Before(r.Received) && slices.Equal(s.Value.Entries, w.Entries)
		}
		if len(w.Entries) > 0 && slices.ContainsFunc(v.OwnReports(node), shows) {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b Write) int { return a.To.Compare(b.To) })
	return out
}

// WithoutField reports whether the CRDs of the run have no field for the reports that it is about. No reporter can write one then.
func (v *Facts) WithoutField() bool {
	return v.Run.CRDs == history.CRDsDefault && v.Run.Contract == history.FormHealthReports
}

// Undeclared reports whether an API server refused an apply of a field that the CRD does not have.
func (r *Request) Undeclared() bool {
	return r.Code == http.StatusInternalServerError && strings.Contains(r.Message, "failed to create typed patch object")
}

// NotChecked is in the remark of an API server that it has not checked further rules, because of what is wrong already.
const NotChecked = "some validation rules were not checked"

// OwnCauses are the causes of a refusal without that remark, unless there is nothing else.
func (r *Request) OwnCauses() []history.Cause {
	own := slices.DeleteFunc(slices.Clone(r.Causes), func(c history.Cause) bool { return strings.Contains(c.Message, NotChecked) })
	if len(own) == 0 {
		return r.Causes
	}
	return own
}

// CrowdedOut reports whether a request was refused for nothing but the items that others have in the typed list: its own would fit.
func (r *Request) CrowdedOut() bool {
	other := func(c history.Cause) bool {
		return c.Reason != string(metav1.CauseTypeTooMany) || !strings.HasSuffix(c.Field, "healthReports")
	}
	own := len(r.Body.Typed)
	return r.Body.Known && own > 0 && own <= contract.MaxTypedReports && len(r.Causes) > 0 && !slices.ContainsFunc(r.OwnCauses(), other)
}

// crowded is when the typed list had no place for the items of a node: from a write that was refused for it until the CR shows a list in which they
// would fit.
func (v *Facts) crowded(node string) span.Set {
	var out []span.Span
	for _, r := range v.RequestsOf[node] {
		if !r.Write || r.Succeeded() || !r.CrowdedOut() {
			continue
		}
		if last := len(out) - 1; last >= 0 && r.Received.Before(out[last].To) {
			continue
		}
		fits := func(s Snapshot) bool {
			others := 0
			for _, item := range s.Object.HealthReports {
				if item.NodeName != node {
					others++
				}
			}
			return s.At.After(r.At) && others+len(r.Body.Typed) <= contract.MaxTypedReports
		}
		until := v.Period.To
		if i := slices.IndexFunc(v.CRs, fits); i >= 0 {
			until = v.CRs[i].At
		}
		out = append(out, span.New(r.Received, until))
	}
	return span.Merge(out)
}
