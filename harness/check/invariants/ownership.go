package invariants

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
)

// It judges three records that a mistake cannot fool together: the user and field manager of each request (audit log),
// managedFields of each state, and what changed from state to state.
func judgeOwnership(v *facts.Facts) (f Finding) {
	a, unforced := readAuthors(v), map[author]bool{}
	for _, r := range v.Requests.All {
		if r.Write && r.UnderTest() {
			f.JudgedAt(r.Received, r.At)
			if r.OnCR && (r.IsApply() || r.Succeeded()) {
				a.judgeManager(&f, r, unforced)
			}
			if r.Succeeded() {
				judgeWriter(v, &f, r)
			}
		}
	}
	if len(v.Requests.All) == 0 { // without an audit log nobody can tell who wrote, and under which name
		return f
	}
	owners, before := map[string][]string(nil), time.Time{}
	for i, s := range v.CR.Snapshots {
		a.judgeOwners(v, &f, owners, s)
		if i > 0 {
			a.judgeChanges(v, &f, s, before)
		}
		owners, before = s.Object.Owners, s.From
	}
	return f
}

// judgeManager compares the field manager of a write, also of one that was refused, with those of all other writes of the system under test. An apply without
// force has no consequences until it is refused: of those that succeed, the first of each writer counts.
func (a authors) judgeManager(f *Finding, r *facts.Request, unforced map[author]bool) {
	harmless, who := false, author{r.Node, r.Resource}
	bad := func(rule, allowed string) {
		seen := " wrote " + r.Resource
		if r.Code == http.StatusConflict {
			seen += ", which was refused: " + refusal(r)
		}
		f.Violate(Violation{Rule: rule, At: r.At, Seq: r.Seq, Node: r.Node, Seen: writer(r) + seen, Allowed: allowed, Harmless: harmless})
	}
	switch {
	case r.FieldManager == "" || r.FieldManager == unnamedManager:
		bad("manager", "a field manager of its own; this one is everybody's who sets none")
	case a.first[who] != r.FieldManager:
		bad("manager-stable", "one field manager for all its writes; the first was under "+text.Quoted(a.first[who]))
	case r.Node != "" && r.IsApply() && !r.Force:
		if r.Succeeded() && unforced[who] {
			return
		}
		harmless = r.Succeeded()
		unforced[who] = unforced[who] || harmless
		bad("force", "an apply with force=true: without it, a field that another manager has taken over is a conflict")
	default:
		all := a.of[managed{r.FieldManager, r.Resource}]
		if i := slices.IndexFunc(all, func(other author) bool { return other.node != r.Node }); i >= 0 {
			bad("manager", "a field manager of its own; under this one wrote also "+all[i].String())
		}
	}
}

// judgeWriter judges what a request of the system under test says by itself.
func judgeWriter(v *facts.Facts, f *Finding, r *facts.Request) {
	other, wrote, allowed := r.Body.ForeignTo(r.Node), " wrote ", "only its own entry "+text.Quoted(contract.ConditionType(r.Node))
	if r.Node == "" {
		rollups := v.Profile.Conditions
		other = r.Body.Beyond(func(t string) bool { return slices.Contains(rollups, t) }, "")
		wrote, allowed = " applied ", "only the conditions "+strings.Join(rollups, ", ")
	}
	if len(other) > 0 && (r.Node != "" || r.OnCR && r.IsApply()) {
		f.Violate(Violation{At: r.At, Seq: r.Seq, Node: r.Node, Seen: writer(r) + wrote + strings.Join(other, ", "), Allowed: allowed})
	}
}

// unnamedManager is what API servers call the manager of a request that names none and has no user agent. With a user
// agent, its part before the first "/" is the manager, which is that of every client with the same binary.
const unnamedManager = "unknown"

// judgeOwners compares managedFields, where they changed, with who may own what.
func (a authors) judgeOwners(v *facts.Facts, f *Finding, old map[string][]string, s facts.Snapshot) {
	for _, field := range slices.Sorted(maps.Keys(s.Object.Owners)) {
		owners := s.Object.Owners[field]
		want, some := ownerOf(field, v.Profile.Conditions)
		if !some || slices.Equal(old[field], owners) {
			continue
		}
		f.JudgedAt(s.From, s.From)
		for _, o := range owners {
			if !a.mayOwn(managed{o, s.Object.Resource}, want) {
				f.Violate(Violation{Rule: "manager", At: s.From, Seq: s.Seq, Node: want.node, Seen: field + " is owned by field manager " + text.Quoted(o), Allowed: "only by " + want.String()})
			}
		}
	}
}

// ownerOf is who in the system under test may own a field; false if anybody may. rollups are conditions of the aggregator.
func ownerOf(field string, rollups []string) (author, bool) {
	if t, ok := strings.CutPrefix(field, "condition/"); ok {
		if n, ok := contract.NodeOfCondition(t); ok {
			return author{node: n}, true
		}
		return author{}, slices.Contains(rollups, t)
	}
	if t, ok := strings.CutPrefix(field, "report/"); ok {
		n, _, _ := strings.Cut(t, "/")
		return author{node: n}, true
	}
	return author{}, false
}

// author is a part of the system under test that writes: the reporter of a node, or, with no node, the aggregator.
// resource is the CR that it writes: the reporters of several API servers of a node share one user, but each CR has
// managers of its own.
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
	seen   map[string]bool      // resourceVersions of the CR that the watch delivered
}

func readAuthors(v *facts.Facts) authors {
	a := authors{map[author]string{}, map[managed][]author{}, map[managed]bool{}, map[string]bool{}}
	for _, s := range v.CR.Snapshots {
		a.seen[s.Object.ResourceVersion] = true
	}
	for _, r := range v.Requests.All {
		if !r.Write || !r.IsApply() && !r.Succeeded() {
			continue
		}
		m := managed{r.FieldManager, r.Resource}
		if !r.UnderTest() {
			a.others[m] = a.others[m] || r.Succeeded()
			continue
		}
		who := author{r.Node, r.Resource}
		if _, known := a.first[who]; !known {
			a.first[who] = r.FieldManager
		}
		if !slices.Contains(a.of[m], who) {
			a.of[m] = append(a.of[m], who)
		}
	}
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

// judgeChanges looks for the write that made each change, and judges by its user. It needs no managedFields, which a
// force apply takes over.
func (a authors) judgeChanges(v *facts.Facts, f *Finding, new facts.Snapshot, before time.Time) {
	changes := changesOf(v, new)
	if len(changes) == 0 {
		return
	}
	writers := a.explaining(v, new, before)
	for _, c := range changes {
		f.JudgedAt(new.From, new.From)
		if !slices.ContainsFunc(writers, c.allowed) {
			f.Violate(Violation{At: new.From, Seq: new.Seq, Node: c.node, Seen: c.what + " by " + cmp.Or(named(writers), "nothing"), Allowed: c.want})
		}
	}
}

// explaining returns the writes to the CR, successful or of unknown outcome, that may have led from the state before to
// s: the one that made its resourceVersion, and those of about that time whose own state the watch did not deliver.
// Watches may skip states that were replaced quickly. A change is a violation only if none of them may have made it.
func (a authors) explaining(v *facts.Facts, s facts.Snapshot, before time.Time) (out []*facts.Request) {
	if r := v.Requests.MadeBy[s.Object.ResourceVersion]; r != nil {
		out = append(out, r)
	}
	from, to := before.Add(-v.Tolerance), s.From.Add(v.Tolerance)
	i := sort.Search(len(v.Requests.All), func(i int) bool { return !v.Requests.All[i].At.Before(from) })
	for ; i < len(v.Requests.All) && !v.Requests.All[i].Received.After(to.Add(time.Minute)); i++ {
		r := v.Requests.All[i]
		if r.Write && r.OnCR && !r.Received.After(to) && (r.Succeeded() || r.Undecided()) && (r.ResourceVersion == "" || !a.seen[r.ResourceVersion]) {
			out = append(out, r)
		}
	}
	return out
}

func named(writers []*facts.Request) string {
	var out []string
	for _, w := range writers {
		if n := writer(w); !slices.Contains(out, n) && len(out) < 3 {
			out = append(out, n)
		}
	}
	return strings.Join(out, ", ")
}

// change is one thing on the CR that differs between two states, and who may have changed it.
type change struct {
	node       string // whose report it is; empty for a condition of others
	what, want string
	allowed    func(*facts.Request) bool
}

func changesOf(v *facts.Facts, new facts.Snapshot) []change {
	var out []change
	for _, c := range new.Conditions {
		t := c.Name
		if _, isReport := contract.NodeOfCondition(t); isReport {
			continue
		}
		how, isRollup, want := " was written", slices.Contains(v.Profile.Conditions, t), "only by its own writer, never by reporter or aggregator"
		if c.Is == nil {
			how = " was removed"
		}
		if isRollup {
			want = "only by the aggregator"
		}
		out = append(out, change{"", "condition " + text.Quoted(t) + how, want, func(r *facts.Request) bool { return !r.UnderTest() || isRollup && r.ByAggregator() }})
	}
	for _, c := range new.Changed {
		n := c.Name
		if c.Is == nil {
			needed := v.Profile.PruneAfter == 0 && stillNeeded(v, n, c.Was, new.From)
			out = append(out, change{n, "the report of " + n + " was removed", "by the reporter of " + n + ", or by the aggregator once the node is gone, or if the report is larger than reports may be",
				func(r *facts.Request) bool { return r.Node == n || !r.UnderTest() || r.ByAggregator() && !needed }})
			continue
		}
		// One replaced by another while both were expected is a write; a part of a typed report may be cleaned up.
		out = append(out, change{n, "the report of " + n + " was written", "only by the reporter of " + n,
			func(r *facts.Request) bool {
				return r.Node == n || !r.UnderTest() || r.ByAggregator() && shrank(c.Was, c.Is)
			}})
	}
	return out
}

// stillNeeded reports whether an aggregator that removed a report must have known that it was needed: the node was
// expected for the whole stale bound before. The aggregator may learn from its watch that the node is gone before the
// recorder has written it down, hence the tolerance after the removal. A report that is over the bounds of the policy
// may always be removed.
func stillNeeded(v *facts.Facts, node string, old *facts.Report, removed time.Time) bool {
	configured := span.Earliest(removed.Add(v.Tolerance), v.Period.To)
	expected := span.New(removed.Add(-v.StaleBound()-v.Tolerance), span.Latest(configured, removed.Add(time.Nanosecond)))
	return v.Expectations.Node(node).Covers(expected) && !old.Oversized()
}

func shrank(old, new *facts.Report) bool {
	return old != nil && new != nil && (len(new.Typed) < len(old.Typed) || new.Condition == nil && old.Condition != nil)
}
