package scenario

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
)

// VerbAttempt makes a request under a reporter's identity, to show what it may not do.
const VerbAttempt Verb = "attempt"

// Values of Attempt.Expect.
const (
	AttemptDenied  = "denied"
	AttemptAllowed = "allowed"
)

// Attempt is a request under the identity of a node's reporter.
type Attempt struct {
	// As is the node.
	As string
	// Method is the request's verb, or apply-condition or apply-rollup.
	Method string
	// Resource is PLURAL, PLURAL.GROUP, or one of these with /SUBRESOURCE. The group of those that health reporting is about may be left out.
	Resource        string
	Namespace, Name string
	// Node is the node whose condition apply-condition writes; empty: its own.
	Node string
	// Body is JSON or a mapping; nil: an empty change.
	Body any
	// Expect is AttemptDenied or AttemptAllowed.
	Expect string
}

// Verb implements Action.
func (*Attempt) Verb() Verb { return VerbAttempt }

func (a *Attempt) fields() []field {
	return []field{required("as", oneNodeField(&a.As)), required("verb", keywordField(&a.Method, attemptVerbs()...)), optional("resource", textField(&a.Resource)),
		optional("namespace", textField(&a.Namespace)), optional("name", textField(&a.Name)), optional("node", nodeField(&a.Node)), optional("body", anyField(&a.Body)),
		required("expect", keywordField(&a.Expect, AttemptDenied, AttemptAllowed))}
}

// Describe implements Action.
func (a *Attempt) Describe() string { return string(VerbAttempt) + parameters(a) }

// Path is what Resource names.
func (a *Attempt) Path() (group, plural, subresource string) {
	resource, subresource, _ := strings.Cut(a.Resource, "/")
	plural, group, _ = strings.Cut(resource, ".")
	if group == "" {
		group = groupOf(plural)
	}
	return group, plural, subresource
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

func attemptVerbs() []string {
	return strings.Fields("get list watch create update patch apply delete apply-condition apply-rollup")
}

func (a *Attempt) check(v *validation, at place) {
	if !slices.Contains(attemptVerbs(), a.Method) {
		return
	}
	own := strings.HasPrefix(a.Method, "apply-") // these say themselves what they write
	switch {
	case own && a.Resource != "":
		v.add(at.at("resource"), "resource with verb %s, expected none", a.Method)
	case !own && a.Resource == "":
		v.add(at, "verb %s without a resource, expected one such as secrets", a.Method)
	}
}
