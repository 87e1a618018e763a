package facts

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Request is a request of the audit log, digested. At is when the API server was done with it (stage ResponseComplete),
// Received when it began (requestReceivedTimestamp).
type Request struct {
	*history.Request
	At       time.Time // when the API server was done
	Seq      int64
	Received time.Time // At, where the audit log does not tell
	Node     string    // whose reporter sent it, or had it sent by an aggregator that it streams to; empty for others
	Relayed  bool      // it was sent by an aggregator
	OnCR     bool
	// OnClusterOperator reports whether it is about the ClusterOperator of the run.
	OnClusterOperator bool
	Write             bool
	Body              Body    // of a write of the system under test
	Entries           []Entry // of Body, about Node
}

// Body is what an apply says.
type Body struct {
	Known      bool // the audit log kept it, and it is an object
	Conditions []history.Condition
	Typed      []contract.TypedReport
	Other      []string // fields of the object or its status that are none of these
}

// Requests are those of the audit log.
type Requests struct {
	All []*Request // in the order in which they were answered
	// Of are those of each node's reporter, and of an aggregator for it. Tried are those of them that were to write the report of the node.
	Of, Tried map[string][]*Request
	// MadeBy has, by resourceVersion, the write that made a state of the CR or the ClusterOperator. A write that changes
	// nothing is answered with the resourceVersion that there was, so the first write with a version made it.
	MadeBy map[string]*Request
}

func newRequests(log *Log, run *history.Run) *Requests {
	rs := &Requests{Of: map[string][]*Request{}, Tried: map[string][]*Request{}, MadeBy: map[string]*Request{}}
	for e := range log.Each(history.KindRequest) {
		q := e.Request
		r := &Request{Request: q, At: e.At, Seq: e.Seq, Received: cmp.Or(q.Received, e.At), Node: q.Reporter(), Relayed: q.ReportOf != "",
			OnCR: isCR(run, q.Resource, q.Name), OnClusterOperator: isClusterOperator(run, q.Resource, q.Name), Write: isWrite(q.Verb)}
		if r.Write && r.UnderTest() {
			r.Body = readBody(r.Request.Body)
			if report := r.Body.report(r.Node); report != nil {
				report.decode()
				r.Entries = report.Entries
			}
		}
		if r.Write && r.Succeeded() && r.ResourceVersion != "" && rs.MadeBy[r.ResourceVersion] == nil && (r.OnCR || r.OnClusterOperator) {
			rs.MadeBy[r.ResourceVersion] = r // a later one with this version changed nothing
		}
		rs.add(r)
	}
	return rs
}

func (rs *Requests) add(r *Request) {
	rs.All = append(rs.All, r)
	if r.Node == "" {
		return
	}
	rs.Of[r.Node] = append(rs.Of[r.Node], r)
	if r.Write && r.OnCR {
		rs.Tried[r.Node] = append(rs.Tried[r.Node], r)
	}
}

func isWrite(verb string) bool {
	return slices.Contains([]string{"create", "update", "patch", "apply", "delete", "deletecollection"}, verb)
}

// Succeeded reports whether the API server answered with 2xx.
func (r *Request) Succeeded() bool { return r.Code >= 200 && r.Code < 300 }

// Undecided reports whether a request may have taken effect although it failed: the API server gave up on it, or its
// client did (499 is a closed connection). etcd does not take back what it has committed.
func (r *Request) Undecided() bool {
	return r.Code == 0 || r.Code == http.StatusRequestTimeout || r.Code == 499 || r.Code >= 500
}

// ByAggregator reports whether an aggregator sent r in its own name.
func (r *Request) ByAggregator() bool { return r.User == contract.AggregatorIdentity && r.Node == "" }

func (r *Request) UnderTest() bool { return r.Node != "" || r.ByAggregator() }

// IsApply reports whether it is a Server-Side Apply. force is an option of an apply only, and is in the URI, so it is
// logged even for a request that was refused before its body was read.
func (r *Request) IsApply() bool {
	return r.Verb == "apply" || r.Force || strings.HasPrefix(r.ContentType, "application/apply-patch")
}

// OwnEntry reports whether a request is exactly what the contract lets a reporter do: get the CR, and apply its own
// entry to the status. Discovery is not in it: a reporter knows what it writes, and needs no RESTMapper.
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
	b := Body{Known: len(object) > 0}
	b.read(object, "")
	return b
}

// read reads an object at a path of the body: below the status, what reports are in.
func (b *Body) read(object json.RawMessage, path string) {
	var fields map[string]json.RawMessage
	if len(object) == 0 || json.Unmarshal(object, &fields) != nil {
		b.Known = false
		return
	}
	for _, k := range sortedKeys(fields) {
		switch top := path == ""; {
		case top && slices.Contains([]string{"apiVersion", "kind", "metadata"}, k):
		case top && k == "status", !top && (k == "encryptionStatus" || k == "oauthAPIServer"):
			b.read(fields[k], path+k+".")
		case !top && k == "conditions":
			b.Known = json.Unmarshal(fields[k], &b.Conditions) == nil && b.Known
		case !top && k == "healthReports":
			b.Known = json.Unmarshal(fields[k], &b.Typed) == nil && b.Known
		default:
			b.Other = append(b.Other, path+k)
		}
	}
}

// report is what the body says about node; nil if that is nothing.
func (b Body) report(node string) *Report {
	all := map[string]*history.Condition{}
	for i, c := range b.Conditions {
		all[c.Type] = &b.Conditions[i]
	}
	var typed []*contract.TypedReport
	for i := range b.Typed {
		typed = append(typed, &b.Typed[i])
	}
	return reportsOn(all, typed)[node]
}

// Has reports whether the body has the entry of node, whatever it says.
func (b Body) Has(node string) bool { return b.report(node) != nil }

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

// Undeclared reports whether an API server refused an apply of a field that the CRD does not have. Server-Side
// Apply answers that with 500 and this message, and not with 422.
func (r *Request) Undeclared() bool {
	return r.Code == http.StatusInternalServerError && strings.Contains(r.Message, "failed to create typed patch object")
}

// NotChecked is in the remark of an API server that CEL rules were not evaluated because the object violates its schema
// already. It is a consequence of the other causes.
const NotChecked = "some validation rules were not checked"

// OwnCauses are the causes of a refusal without that remark, unless there is nothing else.
func (r *Request) OwnCauses() []history.Cause {
	own := slices.DeleteFunc(slices.Clone(r.Causes), func(c history.Cause) bool { return strings.Contains(c.Message, NotChecked) })
	if len(own) == 0 {
		return r.Causes
	}
	return own
}

// CrowdedOut reports whether a request was refused only because others have filled the typed list (maxItems): its own
// items would fit. The reporter is not at fault; it tries again at each interval.
func (r *Request) CrowdedOut() bool {
	other := func(c history.Cause) bool {
		return c.Reason != string(metav1.CauseTypeTooMany) || !strings.HasSuffix(c.Field, "healthReports")
	}
	own := len(r.Body.Typed)
	return r.Body.Known && own > 0 && own <= contract.MaxTypedReports && len(r.Causes) > 0 && !slices.ContainsFunc(r.OwnCauses(), other)
}
