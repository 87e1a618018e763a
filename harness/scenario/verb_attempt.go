package scenario

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Values of Attempt.Expect.
const (
	AttemptDenied  = "denied"
	AttemptAllowed = "allowed"
)

// AttemptStream is the method of an attempt that opens a stream to the aggregator.
const AttemptStream = "stream"

// StreamNode is the key of a stream's metadata under which a client that lies names a node.
const StreamNode = "node"

// Certificates that an attempt to stream may show in place of that of the node's reporter.
const (
	CertificateNone    = "none"
	CertificateExpired = "expired" // that of the reporter, of the past
	CertificateForged  = "forged"  // with the name of a reporter, signed by itself
	CertificateForeign = "foreign" // of the same authority, for a user that is no reporter
)

// Attempt is a request under the identity of a node's reporter, or a stream to the aggregator.
type Attempt struct {
	// As is the node.
	As     string `yaml:"as" required:"true" refers:"node"`
	Method string `yaml:"verb" required:"true" enum:"get,list,watch,create,update,patch,apply,delete,apply-condition,apply-entry,apply-entries,apply-rollup,stream"`
	// Resource is PLURAL, PLURAL.GROUP, or one of these with /SUBRESOURCE. The group of those that health reporting is about may be left out.
	Resource  string `yaml:"resource,omitempty" with:"verb=get,list,watch,create,update,patch,apply,delete" needed:"secrets"`
	Namespace string `yaml:"namespace,omitempty"`
	Name      string `yaml:"name,omitempty"`
	// Node is the node whose condition apply-condition writes, or that a stream calls its own: in a forged certificate, or in its metadata; empty: As.
	Node string `yaml:"node,omitempty" refers:"nodes"`
	// Body is JSON or a mapping; nil: an empty change.
	Body        any    `yaml:"body,omitempty"`
	Size        int    `yaml:"size,omitempty" minimum:"0" maximum:"2097152" with:"verb=apply-condition,apply-entries" description:"bytes of text, of apply-condition and apply-entries"`
	Managers    int    `yaml:"managers,omitempty" minimum:"2" maximum:"16" with:"verb=apply-entry" description:"of apply-entry: under so many field managers, one after the other; expect is about the last"`
	Expect      string `yaml:"expect" required:"true" enum:"denied,allowed"`
	Certificate string `yaml:"certificate,omitempty" enum:"none,expired,forged,foreign" with:"verb=stream" description:"of a stream; default that of the node's reporter"`
}

func (*Attempt) About() string {
	return "a request under a reporter's identity"
}

// Path is what Resource names.
func (a *Attempt) Path() (group, plural, subresource string) {
	resource, subresource, _ := strings.Cut(a.Resource, "/")
	plural, group, _ = strings.Cut(resource, ".")
	return cmp.Or(group, groupOf(plural)), plural, subresource
}

func groupOf(plural string) string {
	switch plural {
	case "kubeapiservers", "openshiftapiservers", "authentications":
		return "operator.openshift.io"
	case "clusteroperators", "apiservers":
		return "config.openshift.io"
	case "leases":
		return "coordination.k8s.io"
	}
	return ""
}

// JSON is the body: what the scenario gives, as JSON or a mapping, or an empty change.
func (a *Attempt) JSON() ([]byte, error) {
	switch body := a.Body.(type) {
	case nil:
		return []byte(`{"metadata":{"name":"` + a.Name + `"}}`), nil
	case string:
		return []byte(body), nil
	default:
		return json.Marshal(body)
	}
}

// Judge is an error if a request was not answered as expected. what names it, and text is the answer. An admission policy may answer 422 where
// RBAC answers 403.
func (a *Attempt) Judge(what string, code int, text string) error {
	want := cmp.Or(a.Expect, AttemptDenied)
	denied := code == http.StatusForbidden || code == http.StatusUnauthorized || code == http.StatusUnprocessableEntity
	if want == AttemptDenied && denied || want == AttemptAllowed && code < 300 {
		return nil
	}
	return fmt.Errorf("%s as the reporter of %s: answered %d, expected %s: %s", what, a.As, code, want, contract.SafeText(text, 300))
}

// JudgeStream is an error if an attempt to stream was not answered as expected. code is that of gRPC, of an aggregator that accepts connections.
func (a *Attempt) JudgeStream(code codes.Code, text string) error {
	// A certificate that TLS refuses ends the connection.
	denied := slices.Contains([]codes.Code{codes.Unauthenticated, codes.PermissionDenied, codes.NotFound, codes.Unavailable}, code)
	if a.Expect == AttemptDenied && denied || a.Expect == AttemptAllowed && code == codes.OK {
		return nil
	}
	return fmt.Errorf("stream as the reporter of %s: answered %v, expected %s: %s", a.As, code, a.Expect, contract.SafeText(text, 300))
}

// History is what the history says of an attempt to stream.
func (a *Attempt) History(node string, code codes.Code, text string) *history.Attempt {
	return &history.Attempt{As: node, Certificate: a.Certificate, Node: a.Node, Code: code.String(), Message: contract.SafeText(text, 300)}
}

// Each sends the request, once or under each of Managers, and judges the last answer. An empty manager is that of the reporter.
func (a *Attempt) Each(what string, send func(manager string) (code int, text string, err error)) error {
	for i := 1; ; i++ {
		manager := ""
		if a.Managers > 0 {
			manager = "attempt-" + strconv.Itoa(i)
		}
		code, text, err := send(manager)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if i >= a.Managers {
			return a.Judge(what, code, text)
		}
	}
}

// Text is the message of the condition that apply-condition writes.
func (a *Attempt) Text() string { return filled("[]", a.Size) }

// filled is a text of at least so many bytes.
func filled(text string, size int) string { return text + strings.Repeat("x", max(0, size-len(text))) }

func (a *Attempt) Validate(v Validation) {
	if c := v.Scenario().Topology.Connectivity; a.Method == AttemptStream && c != history.ConnectStream {
		v.Add("verb", "verb stream with connectivity %s, expected connectivity stream", c)
	}
}
