package check

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
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
func judgeAccepted(v *Facts) (f Finding) {
	type group struct {
		first  *request
		last   time.Time
		writes int
		texts  []string // the first that differ
	}
	var order []string
	groups := map[string]*group{}
	for n := range v.requests.all {
		r := &v.requests.all[n]
		if !r.write || !r.ours() || r.Code == 0 {
			continue
		}
		f.JudgedAt(r.received, r.at)
		if !r.invalid() || v.objects.withoutField() && r.undeclared() {
			continue
		}
		key := r.User + " " + r.Resource + " " + r.rule()
		if groups[key] == nil {
			groups[key] = &group{first: r}
			order = append(order, key)
		}
		g := groups[key]
		g.last = r.at
		g.writes++
		if text := r.refusal(); len(g.texts) < maxTexts && !slices.Contains(g.texts, text) {
			g.texts = append(g.texts, text)
		}
	}
	for _, key := range order {
		g := groups[key]
		seen := fmt.Sprintf("%s of %s were refused for this", fmt.Sprintf("%d writes", g.writes), g.first.writer())
		if g.writes == 1 {
			seen = "a write of " + g.first.writer() + " was refused"
		}
		f.Violate(Violation{At: g.first.at, From: g.first.received, To: g.last, Seq: g.first.seq, Node: g.first.node, Seen: seen + ": " + strings.Join(g.texts, "; or "),
			Allowed: "a write that the API server accepts"})
	}
	return f
}

// invalid reports whether an API server refused a request for what it says, and would refuse it from any user. A JSON patch is refused as
// invalid when its test fails, which is how it finds out that an object has changed.
func (r request) invalid() bool {
	switch r.Code {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return true
	case http.StatusUnprocessableEntity:
		return r.ContentType != string(types.JSONPatchType) && !r.crowdedOut()
	case http.StatusConflict: // an apply without force, of a field that another manager owns; of a reporter the missing force is the mistake (OWNERSHIP)
		return r.isApply() && (r.Force || r.node == "")
	case http.StatusInternalServerError:
		return r.isApply() && r.undeclared()
	case http.StatusForbidden:
		return r.overBounds()
	}
	return false
}

// overBounds reports whether the admission policy refused a reporter's own entry because of how much it says (ci/manifests/reporter-admission.yaml). What a
// policy refuses of other entries is in LEAST-PRIVILEGE.
func (r request) overBounds() bool {
	_, why, denied := strings.Cut(r.Message, " denied request: ")
	return denied && r.node != "" && r.verbatimOwn() && strings.Contains(why, "a reporter") && strings.Contains(why, " at most ")
}

// undeclared reports whether an API server refused an apply of a field that the CRD does not have.
func (r request) undeclared() bool {
	return r.Code == http.StatusInternalServerError && strings.Contains(r.Message, "failed to create typed patch object")
}

// withoutField reports whether the CRDs of the run have no field for the reports that it is about. No reporter can write one then.
func (ob *objectFacts) withoutField() bool {
	return ob.facts.run.CRDs == history.CRDsDefault && ob.facts.run.Contract == history.FormHealthReports
}

// crowdedOut reports whether a request was refused for nothing but the items that others have in the typed list: its own would fit.
func (r request) crowdedOut() bool {
	if !r.body.ok || len(r.body.typed) == 0 || len(r.body.typed) > contract.MaxTypedReports || len(r.Causes) == 0 {
		return false
	}
	for _, c := range r.ownCauses() {
		if c.Reason != string(metav1.CauseTypeTooMany) || !strings.HasSuffix(c.Field, "healthReports") {
			return false
		}
	}
	return true
}

// crowded is when the typed list had no place for the items of a node: from a write that was refused for it until the CR shows a list in which they
// would fit.
func (ob *objectFacts) crowded(node string) spans {
	var out []span
	for _, n := range ob.facts.requests.requestsOf[node] {
		r := &ob.facts.requests.all[n]
		if !r.write || r.succeeded() || !r.crowdedOut() {
			continue
		}
		if last := len(out) - 1; last >= 0 && r.received.Before(out[last].to) {
			continue
		}
		until := ob.facts.complete.to
		for i := sort.Search(len(ob.crs), func(i int) bool { return ob.crs[i].at.After(r.at) }); i < len(ob.crs); i++ {
			others := 0
			for _, item := range ob.crs[i].object.HealthReports {
				if item.NodeName != node {
					others++
				}
			}
			if others+len(r.body.typed) <= contract.MaxTypedReports {
				until = ob.crs[i].at
				break
			}
		}
		out = append(out, span{r.received, until})
	}
	return merged(out)
}

// index is the position of an item in the path of a field.
var index = regexp.MustCompile(`\[\d+\]`)

// rule is what the refusals of one cause have in common: the fields, without positions, and what is wrong with them, without values.
func (r request) rule() string {
	if len(r.Causes) == 0 {
		return fmt.Sprint(r.Code, " ", r.Reason, " ", index.ReplaceAllString(r.Message, "[]"))
	}
	out := fmt.Sprint(r.Code, " ", r.Reason)
	seen := map[string]bool{}
	for _, c := range r.ownCauses() {
		if rule := index.ReplaceAllString(c.Field, "[]") + " " + c.Reason; !seen[rule] {
			seen[rule] = true
			out += " " + rule
		}
	}
	return out
}

// refusal is the API server's answer in its own words: each cause with its field, or, where it named none, its message.
func (r request) refusal() string {
	what := fmt.Sprint(r.Code)
	if r.Reason != "" {
		what += " " + r.Reason
	}
	if len(r.Causes) == 0 {
		return what + ": " + quoted(r.Message)
	}
	var causes []string
	own := r.ownCauses()
	for _, c := range own[:min(len(own), maxCauses)] {
		cause := quoted(c.Message)
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

// notChecked is in the remark of an API server that it has not checked further rules, because of what is wrong already.
const notChecked = "some validation rules were not checked"

// ownCauses are the causes of a refusal without that remark, unless there is nothing else.
func (r request) ownCauses() []history.Cause {
	own := slices.DeleteFunc(slices.Clone(r.Causes), func(c history.Cause) bool { return strings.Contains(c.Message, notChecked) })
	if len(own) == 0 {
		return r.Causes
	}
	return own
}

// maxTexts bounds the answers that are shown of refusals for one cause.
const maxTexts = 3

// maxCauses bounds the causes that are shown of one refusal; a list of 200 items can have one for each.
const maxCauses = 4
