package scenario

import (
	"slices"
	"strings"
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
	Method                                 string
	Resource, Subresource, Namespace, Name string
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
	return []field{required("as", oneNodeField(&a.As)), required("verb", wordField(&a.Method, attemptVerbs()...)), optional("resource", textField(&a.Resource)), optional("subresource", textField(&a.Subresource)),
		optional("namespace", textField(&a.Namespace)), optional("name", textField(&a.Name)), optional("node", nodeField(&a.Node)), optional("body", anyField(&a.Body)),
		required("expect", wordField(&a.Expect, AttemptDenied, AttemptAllowed))}
}

// Describe implements Action.
func (a *Attempt) Describe() string { return string(VerbAttempt) + parameters(a) }

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
