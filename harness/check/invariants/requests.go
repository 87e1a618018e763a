package invariants

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// AcceptedID is the invariant that refused writes violate.
const AcceptedID = "ACCEPTED"

// judgeAccepted makes one violation of all refusals of one writer for one cause: a reporter that is wrong repeats it at
// each interval.
func judgeAccepted(v *facts.Facts) (f Finding) {
	var refused []*facts.Request
	for _, r := range v.Requests.All {
		if !r.Write || !r.UnderTest() && r.User != contract.OperatorIdentity || r.Code == 0 {
			continue
		}
		f.JudgedAt(r.Received, r.At)
		if invalid(r) && !(facts.WithoutField(&v.Run) && r.Undeclared()) {
			refused = append(refused, r)
		}
	}
	for _, all := range grouped(refused, func(r *facts.Request) string { return r.User + " " + r.Resource + " " + ruleOfRefusal(r) }) {
		first, seen := all[0], "a write of "+writer(all[0])+" was refused"
		if len(all) > 1 {
			seen = fmt.Sprintf("%d writes of %s were refused for this", len(all), writer(first))
		}
		var answers []string
		for _, r := range all {
			if answer := refusal(r); len(answers) < maxTexts && !slices.Contains(answers, answer) {
				answers = append(answers, answer)
			}
		}
		f.Violate(Violation{At: first.At, From: first.Received, To: all[len(all)-1].At, Seq: first.Seq, Node: first.Node, Seen: seen + ": " + strings.Join(answers, "; or "),
			Allowed: "a write that the API server accepts"})
	}
	return f
}

// grouped has the requests of each key together, in the order of the first of each.
func grouped[K comparable](all []*facts.Request, key func(*facts.Request) K) (groups [][]*facts.Request) {
	index := map[K]int{}
	for _, r := range all {
		i, known := index[key(r)]
		if !known {
			i, groups = len(groups), append(groups, nil)
			index[key(r)] = i
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// invalid reports whether an API server refused a request for its content, and would refuse it from any user. Codes that
// tell of load, of rights or of a lost race do not count. Two exceptions: a JSON patch whose test fails is refused as
// 422 by design, which is how its sender learns that the object has changed, and names no field; and an apply of an unknown field is 500.
func invalid(r *facts.Request) bool {
	switch r.Code {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return true
	case http.StatusUnprocessableEntity:
		return (r.ContentType != string(types.JSONPatchType) || len(r.Causes) > 0) && !r.CrowdedOut()
	case http.StatusConflict: // an apply without force, of a field that another manager owns; of a reporter the missing force is the mistake (OWNERSHIP)
		return r.IsApply() && (r.Force || r.ByAggregator())
	case http.StatusInternalServerError:
		return r.IsApply() && r.Undeclared()
	case http.StatusForbidden:
		return overBounds(r)
	}
	return false
}

// overBounds reports whether the admission policy refused a reporter's own entry because of how much it says (ci/manifests/reporter-admission.yaml). What a
// policy refuses of other entries is in LEAST-PRIVILEGE.
func overBounds(r *facts.Request) bool {
	_, why, denied := strings.Cut(r.Message, " denied request: ")
	return denied && r.Node != "" && r.OwnEntry() && strings.Contains(why, "a reporter") && strings.Contains(why, " at most ")
}

// index is the position of an item in the path of a field.
var index = regexp.MustCompile(`\[\d+\]`)

// ruleOfRefusal is what the refusals of one cause have in common: the fields, without positions, and what is wrong with them, without values.
func ruleOfRefusal(r *facts.Request) string {
	if len(r.Causes) == 0 {
		return fmt.Sprint(r.Code, " ", r.Reason, " ", index.ReplaceAllString(r.Message, "[]"))
	}
	rules := []string{fmt.Sprint(r.Code, " ", r.Reason)}
	for _, c := range r.OwnCauses() {
		if rule := index.ReplaceAllString(c.Field, "[]") + " " + c.Reason; !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	return strings.Join(rules, " ")
}

// writer names who sent r, for people.
func writer(r *facts.Request) string {
	return r.User + " (field manager " + text.Quoted(r.FieldManager) + ")"
}

// refusal is the API server's answer in its own words: each cause with its field, or, where it named none, its message.
func refusal(r *facts.Request) string {
	what := fmt.Sprint(r.Code)
	if r.Reason != "" {
		what += " " + r.Reason
	}
	if len(r.Causes) == 0 {
		return what + ": " + text.Quoted(r.Message)
	}
	var causes []string
	own := r.OwnCauses()
	for _, c := range own[:min(len(own), maxCauses)] {
		cause := text.Quoted(c.Message)
		if c.Field != "" {
			cause = c.Field + ": " + cause
		}
		causes = append(causes, cause)
	}
	if more := len(own) - len(causes); more > 0 {
		causes = append(causes, fmt.Sprintf("and %d more", more))
	}
	return what + ": " + strings.Join(causes, "; ")
}

// maxTexts bounds the answers that are shown of refusals for one cause.
const maxTexts = 3

// maxCauses bounds the causes that are shown of one refusal; a list of 200 items can have one for each.
const maxCauses = 4

// A request that was refused counts as well: it shows what the program would do with more rights. With an
// administrator's credentials, as OpenShift's reporter has, reads are not judged.
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
