package audit

import (
	"bytes"
	"maps"
	"slices"
	"strings"

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
	// Seen is told the user agent of every request, recorded or not: a marker request proves that the log was read
	// up to it. May be nil.
	Seen func(node, userAgent string)

	open map[string]*history.Request // writes that were received and not answered, by audit id
}

// SystemUnderTest are the identities of the contract: reporters and aggregator.
func SystemUnderTest(user string) bool {
	return user == contract.AggregatorIdentity || strings.HasPrefix(user, contract.ReporterIdentityPrefix)
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
	if r.Identity(request.User) || Writes(request.Verb) && r.Resource(request.Resource) || r.Also != nil && r.Also(request) {
		r.note(request, ended)
	}
	if ended && r.Seen != nil {
		r.Seen(node, request.UserAgent)
	}
	return nil
}
