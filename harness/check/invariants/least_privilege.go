package invariants

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

func judgeLeastPrivilege(v *facts.Facts) (f Finding) {
	for _, r := range v.Requests.All {
		if r.Node == "" || v.Run.ReporterIdentity == history.IdentityAdmin && !r.Write {
			continue
		}
		f.JudgedAt(r.Received, r.At)
		allowed := "get of the operator CR, apply of its status with nothing but its own entry"
		if streams := v.Run.Connectivity == history.ConnectStream; streams && !r.Relayed {
			allowed = "nothing: what it reports the aggregator writes"
		} else if r.OwnEntry() {
			continue
		}
		outcome := fmt.Sprintf("succeeded (%d)", r.Code)
		if !r.Succeeded() {
			outcome = "was refused (" + refusal(r) + ")"
		}
		f.Violate(Violation{Rule: overstep(r), At: r.At, Seq: r.Seq, Node: r.Node, Seen: r.User + ": " + describe(r) + " " + outcome,
			Allowed: allowed, Harmless: r.Succeeded() && !r.Write})
	}
	return f
}

// overstep is the rule of a request that the contract does not allow.
func overstep(r *facts.Request) string {
	switch {
	case r.Verb == "update" || r.Verb == "create":
		return "apply"
	case len(r.Body.ForeignTo(r.Node)) > len(r.Body.Other):
		return "foreign"
	}
	return ""
}

func describe(r *facts.Request) string {
	resource := cmp.Or(r.Resource, "(no resource)")
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	s := r.Verb + " " + resource + " " + text.Quoted(r.Name)
	if r.FieldManager != "" {
		s += " as field manager " + text.Quoted(r.FieldManager)
	}
	if other := r.Body.ForeignTo(r.Node); len(other) > 0 {
		s += " with " + strings.Join(other, ", ")
	}
	return s
}
