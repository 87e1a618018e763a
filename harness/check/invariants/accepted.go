package invariants

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/text"
)

// AcceptedID is the invariant that refused writes violate.
const AcceptedID = "ACCEPTED"

func accepted() Invariant {
	return Invariant{
		ID:        AcceptedID,
		Statement: "what a reporter or the aggregator writes is valid: no API server refuses a write for its content",
		Source:    "The reporter, condition; The typed form of the same report; the schema of the CRDs",
		Judge:     judgeAccepted,
	}
}

// judgeAccepted makes one violation of all refusals of one writer for one cause.
func judgeAccepted(v *facts.Facts) (f Finding) {
	type group struct {
		first  *facts.Request
		last   time.Time
		writes int
		texts  []string // the first that differ
	}
	var order []string
	groups := map[string]*group{}
	for _, r := range v.Requests {
		if !r.Write || !r.UnderTest() || r.Code == 0 {
			continue
		}
		f.JudgedAt(r.Received, r.At)
		if !invalid(r) || v.WithoutField() && r.Undeclared() {
			continue
		}
		key := r.User + " " + r.Resource + " " + ruleOfRefusal(r)
		if groups[key] == nil {
			groups[key] = &group{first: r}
			order = append(order, key)
		}
		g := groups[key]
		g.last = r.At
		g.writes++
		if answer := refusal(r); len(g.texts) < maxTexts && !slices.Contains(g.texts, answer) {
			g.texts = append(g.texts, answer)
		}
	}
	for _, key := range order {
		g := groups[key]
		seen := fmt.Sprintf("%d writes of %s were refused for this", g.writes, writer(g.first))
		if g.writes == 1 {
			seen = "a write of " + writer(g.first) + " was refused"
		}
		f.Violate(Violation{At: g.first.At, From: g.first.Received, To: g.last, Seq: g.first.Seq, Node: g.first.Node, Seen: seen + ": " + strings.Join(g.texts, "; or "),
			Allowed: "a write that the API server accepts"})
	}
	return f
}

// invalid reports whether an API server refused a request for what it says, and would refuse it from any user. A JSON patch is refused as
// invalid when its test fails, which is how it finds out that an object has changed.
func invalid(r *facts.Request) bool {
	switch r.Code {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return true
	case http.StatusUnprocessableEntity:
		return r.ContentType != string(types.JSONPatchType) && !r.CrowdedOut()
	case http.StatusConflict: // an apply without force, of a field that another manager owns; of a reporter the missing force is the mistake (OWNERSHIP)
		return r.IsApply() && (r.Force || r.Node == "")
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
