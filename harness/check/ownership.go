package check

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

func ownership() Invariant {
	return Invariant{
		ID:        "OWNERSHIP",
		Statement: "the entry of node n is written only by n's reporter, under one field manager that no other node uses and with force, and removed only by it or the aggregator; rollups are written only by the aggregator; nobody else's conditions on the CR change",
		Source:    "The reporter, field manager; The aggregator",
		Rules: []Rule{
			{Code: ruleManager, Statement: "each reporter and the aggregator have a field manager of their own"},
			{Code: ruleManagerStable, Statement: "a reporter, or the aggregator, writes under one field manager"},
			{Code: ruleForce, Statement: "a reporter applies with force"},
		},
		Judge: judgeOwnership,
	}
}

func judgeOwnership(v *Facts) (f Finding) {
	unforced := map[author]bool{}
	for n := range v.requests.all {
		r := &v.requests.all[n]
		if r.write && r.ours() {
			f.JudgedAt(r.received, r.at)
			if r.onCR && (r.isApply() || r.succeeded()) {
				judgeManager(v, &f, *r, unforced)
			}
			if r.succeeded() {
				judgeWriter(v, &f, *r)
			}
		}
	}
	for i := range v.objects.crs {
		judgeOwners(v, &f, i)
		judgeChanges(v, &f, i)
	}
	return f
}

// judgeManager compares the field manager of a write, also of one that was refused, with those of all other writes of the system under test. An apply without
// force has no consequences until it is refused: of those that succeed, the first of each writer counts.
func judgeManager(v *Facts, f *Finding, r request, unforced map[author]bool) {
	harmless := false
	bad := func(rule, allowed string) {
		seen := " wrote " + r.Resource
		if r.Code == http.StatusConflict {
			seen += ", which was refused: " + r.refusal()
		}
		f.Violate(Violation{Rule: rule, At: r.at, Seq: r.seq, Node: r.node, Seen: r.writer() + seen, Allowed: allowed, harmless: harmless})
	}
	if r.FieldManager == "" || r.FieldManager == unnamedManager {
		bad(ruleManager, "a field manager of its own; this one is everybody's who sets none")
		return
	}
	if first := authorship(v).first[author{r.node, r.Resource}]; first != r.FieldManager {
		bad(ruleManagerStable, "one field manager for all its writes; the first was under "+quoted(first))
		return
	}
	if who := (author{r.node, r.Resource}); r.node != "" && r.isApply() && !r.Force {
		if r.succeeded() && unforced[who] {
			return
		}
		harmless = r.succeeded()
		unforced[who] = unforced[who] || harmless
		bad(ruleForce, "an apply with force=true: without it, a field that another manager has taken over is a conflict")
		return
	}
	for _, other := range authorship(v).of[managed{r.FieldManager, r.Resource}] {
		if other.node != r.node {
			bad(ruleManager, "a field manager of its own; under this one wrote also "+other.String())
			return
		}
	}
}

// judgeWriter looks at what a request of the system under test says by itself.
func judgeWriter(v *Facts, f *Finding, r request) {
	bad := func(seen, allowed string) {
		f.Violate(Violation{At: r.at, Seq: r.seq, Node: r.node, Seen: r.writer() + " " + seen, Allowed: allowed})
	}
	switch {
	case r.node != "":
		if other := r.body.foreignTo(r.node); len(other) > 0 {
			bad("wrote "+joined(other, ", "), "only its own entry "+quoted(contract.ConditionType(r.node)))
		}
	case r.onCR:
		if other := notRollups(r.body); r.isApply() && len(other) > 0 {
			bad("applied "+joined(other, ", "), "only the conditions "+joined(contract.RollupTypes(), ", "))
		}
	}
}

// unnamedManager is what API servers call the manager of a request that names none and has no user agent.
const unnamedManager = "unknown"

func notRollups(b body) []string {
	out := append([]string(nil), b.other...)
	for _, c := range b.conditions {
		if !slices.Contains(contract.RollupTypes(), c.Type) {
			out = append(out, "condition "+quoted(c.Type))
		}
	}
	for _, t := range b.typed {
		out = append(out, "report of node "+quoted(t.NodeName))
	}
	return out
}

// judgeOwners compares managedFields, where they changed, with who may own what. Without an audit log nobody can tell who wrote under which name.
func judgeOwners(v *Facts, f *Finding, i int) {
	s := v.objects.crs[i]
	if len(v.requests.all) == 0 {
		return
	}
	for _, field := range sortedKeys(s.object.Owners) {
		owners := s.object.Owners[field]
		if i > 0 && slices.Equal(v.objects.crs[i-1].object.Owners[field], owners) {
			continue
		}
		want, some := ownerOf(field)
		if !some {
			continue
		}
		f.JudgedAt(s.at, s.at)
		for _, o := range owners {
			if !authorship(v).mayOwn(managed{o, s.object.Resource}, want) {
				f.Violate(Violation{Rule: ruleManager, At: s.at, Seq: s.seq, Node: want.node, Seen: field + " is owned by field manager " + quoted(o), Allowed: "only by " + want.String()})
			}
		}
	}
}

// ownerOf is who in the system under test may own a field; false if anybody may.
func ownerOf(field string) (author, bool) {
	if t, ok := strings.CutPrefix(field, "condition/"); ok {
		if n, ok := contract.NodeOfCondition(t); ok {
			return author{node: n}, true
		}
		return author{}, slices.Contains(contract.RollupTypes(), t)
	}
	if t, ok := strings.CutPrefix(field, "report/"); ok {
		n, _, _ := strings.Cut(t, "/")
		return author{node: n}, true
	}
	return author{}, false
}

// author is a part of the system under test that writes: the reporter of a node, or, with no node, the aggregator. resource is what it writes, where
// that matters: the reporters of several API servers of a node share one user.
type author struct{ node, resource string }

func (a author) String() string {
	if a.node == "" {
		return "the aggregator"
	}
	return "the reporter of " + a.node
}

// managed is a field manager of a resource.
type managed struct{ manager, resource string }

// authors tells who wrote under which field manager, by the user of each request.
type authors struct {
	first  map[author]string
	of     map[managed][]author // of the system under test
	others map[managed]bool     // somebody else wrote under it: the harness, in the part of somebody
}

func authorship(v *Facts) authors {
	if v.authors.first != nil {
		return v.authors
	}
	a := authors{map[author]string{}, map[managed][]author{}, map[managed]bool{}}
	for n := range v.requests.all {
		r := &v.requests.all[n]
		if !r.write || !r.isApply() && !r.succeeded() {
			continue
		}
		m := managed{r.FieldManager, r.Resource}
		if !r.ours() {
			a.others[m] = a.others[m] || r.succeeded()
			continue
		}
		who := author{r.node, r.Resource}
		if _, known := a.first[who]; !known {
			a.first[who] = r.FieldManager
		}
		if !slices.Contains(a.of[m], who) {
			a.of[m] = append(a.of[m], who)
		}
	}
	v.authors = a
	return a
}

// mayOwn reports whether a field manager is that of the wanted author, or of nobody in the system under test.
func (a authors) mayOwn(m managed, want author) bool {
	want.resource = m.resource
	if len(a.of[m]) == 0 {
		return a.others[m]
	}
	return slices.Contains(a.of[m], want)
}

// judgeChanges asks for every change who may have made it. Without an audit log nobody can tell.
func judgeChanges(v *Facts, f *Finding, i int) {
	if len(v.requests.all) == 0 || i == 0 {
		return
	}
	old, new := v.objects.crs[i-1], v.objects.crs[i]
	changed := v.objects.changedFields(old, new)
	if len(changed) == 0 {
		return
	}
	writers := v.requests.explaining(new, old.at)
	for _, field := range changed {
		f.JudgedAt(new.at, new.at)
		allowed, node, want := mayChange(v, field, old, new)
		if !slices.ContainsFunc(writers, allowed) {
			f.Violate(Violation{At: new.at, Seq: new.seq, Node: node, Seen: field.what + " by " + orNothing(named(writers)), Allowed: want})
		}
	}
}

func named(writers []request) string {
	var out []string
	for _, w := range writers {
		if n := w.writer(); !slices.Contains(out, n) && len(out) < 3 {
			out = append(out, n)
		}
	}
	return joined(out, ", ")
}

// field is one thing on the CR that differs between two states.
type field struct {
	condition string // type, or
	node      string // whose report
	removed   bool
	what      string
}

func (ob *objectFacts) changedFields(old, new snapshot) []field {
	var out []field
	before := map[string]history.Condition{}
	for _, c := range old.object.Conditions {
		before[c.Type] = c
	}
	for _, c := range new.object.Conditions {
		b, had := before[c.Type]
		delete(before, c.Type)
		if _, isReport := contract.NodeOfCondition(c.Type); !isReport && (!had || b != c) {
			out = append(out, field{condition: c.Type, what: "condition " + quoted(c.Type) + " was written"})
		}
	}
	for _, t := range sortedKeys(before) {
		if _, isReport := contract.NodeOfCondition(t); !isReport {
			out = append(out, field{condition: t, removed: true, what: "condition " + quoted(t) + " was removed"})
		}
	}
	for _, n := range sortedKeys(new.reports) {
		if old.reports[n] != new.reports[n] {
			out = append(out, field{node: n, what: "the report of " + n + " was written"})
		}
	}
	for _, n := range sortedKeys(old.reports) {
		if new.reports[n] == nil {
			out = append(out, field{node: n, removed: true, what: "the report of " + n + " was removed"})
		}
	}
	return out
}

func mayChange(v *Facts, c field, old, new snapshot) (allowed func(request) bool, node, want string) {
	switch {
	case slices.Contains(contract.RollupTypes(), c.condition):
		return func(r request) bool { return r.aggregator() || !r.ours() }, "", "only by the aggregator"
	case c.condition != "":
		return func(r request) bool { return !r.ours() }, "", "only by its own writer, never by reporter or aggregator"
	case !c.removed:
		own := func(r request) bool { return r.node == c.node || !r.ours() }
		// One replaced by another while both were expected is a write; a part of a typed report may be cleaned up.
		return func(r request) bool {
				return own(r) || r.aggregator() && shrank(old.reports[c.node], new.reports[c.node])
			}, c.node,
			"only by the reporter of " + c.node
	}
	// The aggregator can learn from its watch that the node is gone before whoever deleted the node has written it down.
	configured := earliest(new.at.Add(v.tolerance()), v.complete.to)
	needed := v.expectations.ofNode(c.node).covers(span{new.at.Add(-v.run.Timing.StaleBound() - v.tolerance()), latest(configured, new.at.Add(time.Nanosecond))})
	needed = needed && !old.reports[c.node].oversized()
	return func(r request) bool { return r.node == c.node || !r.ours() || r.aggregator() && !needed }, c.node,
		"by the reporter of " + c.node + ", or by the aggregator once the node is gone, or if the report is larger than reports may be"
}

func shrank(old, new *report) bool {
	return old != nil && new != nil && (len(new.typed) < len(old.typed) || new.cond == nil && old.cond != nil)
}
