package audit

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
)

// Recorder chooses the requests that matter: everything that a watched identity does, and every write to a watched
// resource, by anybody. It is fed by one goroutine at a time.
type Recorder struct {
	Sink record.Sink
	// Identity says whether everything that a user does is recorded.
	Identity func(user string) bool
	// Resource says whether writes to a resource ("plural.group") are recorded.
	Resource func(resource string) bool
	// Also says which further requests are recorded, reads among them. May be nil.
	Also func(*history.Request) bool
	// Streams: reporters stream, and an aggregator writes their reports.
	Streams bool
	// Harness reports whether the harness made the request with an audit id. It alone knows these ids, so that no other client can use one. May be nil.
	Harness func(auditID string) bool
	// Seen is told the user agent of every request, recorded or not: a marker request proves that the log was read
	// up to it. May be nil.
	Seen func(node, userAgent string)

	reportOf map[string]string           // by field manager: the node whose report was written under it
	open     map[string]*history.Request // writes that were received and not answered, by audit id
}

// SystemUnderTest are the identities of the contract: reporters and aggregator.
func SystemUnderTest(user string) bool {
	_, reporter := contract.NodeOfReporter(user, "")
	return reporter || user == contract.AggregatorIdentity
}

func (r *Recorder) note(request *history.Request, ended bool) {
	if ended {
		delete(r.open, request.AuditID)
		r.Sink.Record(request.Completed, "audit/"+request.APIServer, request)
		return
	}
	if r.open == nil {
		r.open = map[string]*history.Request{}
	}
	r.open[request.AuditID] = request
}

// relayed is the node whose report an aggregator wrote with a request: what it applied is that report and nothing else. An API server that was killed
// logs no body; then the field manager tells.
func (r *Recorder) relayed(request *history.Request) string {
	if request.FieldManager == "" || request.Verb != "patch" && request.Verb != "apply" {
		return ""
	}
	node := ReportIn(request.Body)
	switch {
	case node == "" && len(request.Body) == 0:
		return r.reportOf[request.FieldManager]
	case node != "":
		if r.reportOf == nil {
			r.reportOf = map[string]string{}
		}
		r.reportOf[request.FieldManager] = node
	}
	return node
}

// ReportIn is the node whose report an apply is, if it has nothing but that; else empty.
func ReportIn(apply []byte) (node string) {
	var object struct{ Status record.Status }
	if json.Unmarshal(apply, &object) != nil {
		return ""
	}
	var nodes []string
	for _, c := range object.Status.Conditions {
		of, ok := contract.NodeOfCondition(c.Type)
		if !ok {
			return ""
		}
		nodes = append(nodes, of)
	}
	for _, r := range object.Status.HealthReports() {
		nodes = append(nodes, r.NodeName)
	}
	if nodes = slices.Compact(nodes); len(nodes) != 1 {
		return ""
	}
	return nodes[0]
}

// Unanswered records the writes whose end was never logged, with code 0: the API server was killed in between, and
// may have carried them out. Call it when the log was read to its end.
func (r *Recorder) Unanswered() {
	for _, id := range slices.Sorted(maps.Keys(r.open)) {
		request := r.open[id]
		request.Message = "the API server ended before it logged an answer"
		r.Sink.Record(request.Completed, "audit/"+request.APIServer, request)
	}
	r.open = nil
}

// eventHead begins every event. Within a line it stands where an API server was killed while it wrote, and its successor went on behind
// that: what was begun is lost, as everything else that the killed one had not written yet.
const eventHead = `{"kind":"Event",`

// Line records one line of the audit log of the API server on node.
func (r *Recorder) Line(node string, line []byte) error {
	request, ended, err := Decode(node, line)
	if behind := bytes.LastIndex(line, []byte(eventHead)); err != nil && behind > 0 {
		request, ended, err = Decode(node, line[behind:])
	}
	if err != nil || request == nil {
		return err
	}
	request.ByHarness = r.Harness != nil && r.Harness(request.AuditID)
	if r.Streams && request.User == contract.AggregatorIdentity {
		request.ReportOf = r.relayed(request)
	}
	if r.Identity(request.User) || Writes(request.Verb) && r.Resource(request.Resource) || r.Also != nil && r.Also(request) {
		r.note(request, ended)
	}
	if ended && r.Seen != nil {
		r.Seen(node, request.UserAgent)
	}
	return nil
}
