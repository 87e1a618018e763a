package scenario

import (
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

const (
	// maxRefusals is how many requests a refusal can be counted for: an hour of a reporter's.
	maxRefusals = 10_000
	// maxRetryAfter bounds Retry-After, in seconds. kube-apiserver asks for 1 to 64 (KEP-1040); more than a minute no test waits for.
	maxRetryAfter = 60
)

// refusedRoles are whose requests can be refused.
func refusedRoles() []string { return []string{history.RoleReporter, history.RoleAggregator} }

// refusedVerbs are those that reporters and aggregators use.
func refusedVerbs() []string { return []string{"get", "list", "watch", "patch", "create", "update"} }

func watchesModes() []string {
	return []string{history.WatchesLate, history.WatchesExpired, history.WatchesClosed, history.WatchesRestore}
}

// refuse is what API servers answer to the system under test.
func (v *validation) refuse(a Action, at place) {
	if a.Process.Role != "" {
		v.word(at.at("role"), "role", a.Process.Role, refusedRoles())
	}
	v.someNodes(at.at("node"), a.Process.Node)
	mode := a.Text("mode")
	if !v.word(at.at("mode"), "mode", mode, append(history.RefusalModes(), history.RefuseRestore)) {
		return
	}
	for _, name := range []string{"verb", "count", "for", "retryAfter"} {
		if _, written := a.Params[name]; written && mode == history.RefuseRestore {
			v.add(at.at(name), "%s with mode restore, expected it with a mode that refuses: restore ends all refusals of the role at the node", name)
		}
	}
	v.refusedVerb(a.Text("verb"), mode, at.at("verb"))
	v.number(at.at("count"), "count", a.Int("count", 1), 1, maxRefusals)
	v.positive(a, "for", at)
	v.number(at.at("retryAfter"), "retryAfter", a.Int("retryAfter", 1), 1, maxRetryAfter)
	if _, written := a.Params["retryAfter"]; written && mode != history.RefuseTooManyRequests && mode != history.RefuseRestore {
		v.add(at.at("retryAfter"), "retryAfter with mode %s, expected it with too-many-requests only", mode)
	}
}

func (v *validation) refusedVerb(verb, mode string, at place) {
	if verb == "" || !v.word(at, "verb", verb, refusedVerbs()) {
		return
	}
	if mode == history.RefuseWebhookTimeout && (verb == "get" || verb == "list" || verb == "watch") {
		v.add(at, "verb %s with mode webhook-timeout, expected one that writes: admission does not look at reads", verb)
	}
}

// Modes of a credential.
const (
	CredentialExpire = "expire"
	CredentialRenew  = "renew"
)

// credential is that of a reporter.
func (v *validation) credential(a Action, at place) {
	v.someNodes(at.at("node"), a.Process.Node)
	v.word(at.at("mode"), "mode", a.Text("mode"), []string{CredentialExpire, CredentialRenew})
	if v.scenario.Topology.ByOperator() {
		v.add(at, "credential with lifecycle operator, expected none: its operator starts reporters itself")
	}
}

// watches is when the aggregators learn of changes.
func (v *validation) watches(a Action, at place) {
	v.someNodes(at.at("node"), a.Process.Node)
	mode := a.Text("mode")
	if !v.word(at.at("mode"), "mode", mode, watchesModes()) {
		return
	}
	switch _, written := a.Params["by"]; {
	case mode != history.WatchesLate && written:
		v.add(at.at("by"), "by with mode %s, expected it with late only", mode)
	case mode == history.WatchesLate && !written:
		v.add(at, "mode late without by, expected one such as by: 2I")
	}
	v.positive(a, "by", at)
}

// positive is for a duration of which nothing would be nothing at all. What is no duration is reported with the others.
func (v *validation) positive(a Action, name string, at place) {
	value, written := a.Params[name]
	if !written {
		return
	}
	if d, err := resolveValue(value, contract.DefaultTiming()); err == nil && d == time.Duration(0) {
		v.add(at.at(name), "%s is 0, expected more", name)
	}
}
