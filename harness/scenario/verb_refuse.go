package scenario

import (
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/history"
)

// VerbRefuse lets API servers refuse requests of the system under test.
const VerbRefuse Verb = "refuse"

const (
	// maxRefusals is how many requests a refusal can be counted for: an hour of a reporter's.
	maxRefusals = 10_000
	// maxRetryAfter bounds Retry-After, in seconds. kube-apiserver asks for 1 to 64 (KEP-1040); more than a minute no test waits for.
	maxRetryAfter = 60
)

// Refuse lets API servers refuse requests of reporters or aggregators.
type Refuse struct {
	// Role is whose requests are refused; empty: both roles'.
	Role string
	// Node is that of the API server; empty: all.
	Node string
	// Mode is what is answered: one of history.RefusalModes, or restore.
	Mode string
	// Method is the verb of the requests ("patch"); empty: all.
	Method string
	// Count requests are refused, then none; 0: until For is over, or the mode restore.
	Count int
	For   Duration
	// RetryAfter is in seconds; 0: 1.
	RetryAfter int
}

// Verb implements Action.
func (*Refuse) Verb() Verb { return VerbRefuse }

func (r *Refuse) fields() []field {
	return append(ofTarget(optional("role", keywordField(&r.Role, refusedRoles()...)).doc("whose requests; default both"), optional("node", nodeField(&r.Node)).doc("of the API server; default all")),
		required("mode", keywordField(&r.Mode, append(history.RefusalModes(), history.RefuseRestore)...)).doc("what is answered; restore ends it"),
		optional("verb", keywordField(&r.Method, refusedVerbs()...)).doc("of the requests; default all"),
		optional("count", intField(&r.Count, 1, maxRefusals)).doc("so many requests, then none"), optional("for", positiveField(&r.For)).doc("for so long"),
		optional("retryAfter", intField(&r.RetryAfter, 1, maxRetryAfter)).doc("seconds, with too-many-requests; default 1"))
}

func (r *Refuse) requests() Selector { return Selector{Role: r.Role, Node: r.Node} }

func (r *Refuse) target([]string) string {
	return strings.TrimSpace("requests " + r.requests().processes())
}

// Describe implements Action.
func (r *Refuse) Describe() string {
	role := r.Role
	if role == "" {
		role = "reporters' and aggregators'"
	}
	return "API server" + ofNode(r.Node) + ": " + role + " requests: " + r.Mode + parameters(r, "mode")
}

func (r *Refuse) harm() string { return harmOf(r) }

// Undo implements Undoable.
func (r *Refuse) Undo() Action {
	if r.Mode == history.RefuseRestore {
		return nil
	}
	return &Refuse{Role: r.Role, Node: r.Node, Mode: history.RefuseRestore}
}

// Bound is how long requests are refused; zero: until they are counted, or restored.
func (r *Refuse) Bound() Duration { return r.For }

// Lasts implements Lasting.
func (r *Refuse) Lasts() bool { return r.Mode != history.RefuseRestore }

// EndedBy implements Lasting.
func (r *Refuse) EndedBy(b Action) bool {
	other, ok := b.(*Refuse)
	return ok && other.Mode == history.RefuseRestore && other.requests().covers(r.requests())
}

func refusedRoles() []string { return []string{history.RoleReporter, history.RoleAggregator} }

// refusedVerbs are those that reporters and aggregators use.
func refusedVerbs() []string { return []string{"get", "list", "watch", "patch", "create", "update"} }

func (r *Refuse) check(v *validation, at place) {
	if !slices.Contains(append(history.RefusalModes(), history.RefuseRestore), r.Mode) {
		return
	}
	if r.Mode == history.RefuseRestore {
		for _, f := range r.fields() {
			if name := f.name; !f.target && name != "mode" && v.given(at.at(name), f) {
				v.add(at.at(name), "%s with mode restore, expected it with a mode that refuses: restore ends all refusals of the role at the node", name)
			}
		}
		return
	}
	if r.Mode == history.RefuseWebhookTimeout && slices.Contains([]string{"get", "list", "watch"}, r.Method) {
		v.add(at.at("verb"), "verb %s with mode webhook-timeout, expected one that writes: admission does not look at reads", r.Method)
	}
	if r.RetryAfter != 0 && r.Mode != history.RefuseTooManyRequests {
		v.add(at.at("retryAfter"), "retryAfter with mode %s, expected it with too-many-requests only", r.Mode)
	}
}
