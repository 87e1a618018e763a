package audit

import (
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/record"
)

// Recorder chooses the requests that matter: everything that a watched identity does, and every write to a watched
// resource, by anybody.
type Recorder struct {
	Sink record.Sink
	// Identity says whether everything that a user does is recorded.
	Identity func(user string) bool
	// Resource says whether writes to a resource ("plural.group") are recorded.
	Resource func(resource string) bool
	// Seen is told the user agent of every request, recorded or not: a marker request proves that the log was read
	// up to it. May be nil.
	Seen func(node, userAgent string)
}

// SystemUnderTest are the identities of the contract: reporters and aggregator.
func SystemUnderTest(user string) bool {
	return user == contract.AggregatorIdentity || strings.HasPrefix(user, contract.ReporterIdentityPrefix)
}

// Line records one line of the audit log of the API server on node.
func (r *Recorder) Line(node string, line []byte) error {
	request, err := Decode(node, line)
	if err != nil || request == nil {
		return err
	}
	if r.Identity(request.User) || Writes(request.Verb) && r.Resource(request.Resource) {
		r.Sink.Record(request.Completed, "audit/"+node, request)
	}
	if r.Seen != nil {
		r.Seen(node, request.UserAgent)
	}
	return nil
}
