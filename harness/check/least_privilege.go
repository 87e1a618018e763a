package check

import "github.com/kmsharness/kmsharness/harness/history"

func leastPrivilege() Invariant {
	return Invariant{
		ID:        "LEAST-PRIVILEGE",
		Statement: "the reporter identity made no request other than reading the operator CR and applying its own entry; an administrator's made no other write",
		Source:    "The reporter, identity",
		Rules: []Rule{
			{Code: ruleApply, Statement: "a reporter neither updates nor creates"},
			{Code: ruleForeign, Statement: "a reporter writes no report of another node and no other condition"},
		},
		Judge: judgeLeastPrivilege,
	}
}

func judgeLeastPrivilege(v *Facts) (f Finding) {
	for n := range v.requests.all {
		r := &v.requests.all[n]
		if r.node == "" || v.run.ReporterIdentity == history.IdentityAdmin && !r.write {
			continue
		}
		f.JudgedAt(r.received, r.at)
		allowed := "get of the operator CR, apply of its status with nothing but its own entry"
		if streams := v.run.Connectivity == history.ConnectStream; streams && !r.relayed {
			allowed = "nothing: what it reports the aggregator writes"
		} else if r.verbatimOwn() {
			continue
		}
		outcome := "succeeded (" + number(int64(r.Code)) + ")"
		if !r.succeeded() {
			outcome = "was refused (" + r.refusal() + ")"
		}
		f.Violate(Violation{Rule: r.overstep(), At: r.at, Seq: r.seq, Node: r.node, Seen: r.User + ": " + r.what() + " " + outcome,
			Allowed: allowed, harmless: r.succeeded() && !r.write})
	}
	return f
}

// overstep is the rule of a request that the contract does not allow.
func (r request) overstep() string {
	switch {
	case r.Verb == "update" || r.Verb == "create":
		return ruleApply
	case len(r.body.foreignTo(r.node)) > len(r.body.other):
		return ruleForeign
	}
	return ""
}

// verbatimOwn: exactly what the contract lets a reporter do. Discovery is not in it: a reporter knows what it writes.
func (r request) verbatimOwn() bool {
	switch {
	case !r.onCR || r.Name != "cluster":
		return false
	case r.Verb == "get":
		return r.Subresource == ""
	case r.Verb != "patch" && r.Verb != "apply" || r.Subresource != "status" || !r.isApply():
		return false
	}
	return len(r.body.foreignTo(r.node)) == 0
}

func (r request) what() string {
	resource := r.Resource
	if resource == "" {
		resource = "(no resource)"
	}
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	s := r.Verb + " " + resource + " " + quoted(r.Name)
	if r.FieldManager != "" {
		s += " as field manager " + quoted(r.FieldManager)
	}
	if other := r.body.foreignTo(r.node); len(other) > 0 {
		s += " with " + joined(other, ", ")
	}
	return s
}
