package invariants

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// operatorSettles is how long an operator may leave a condition as it is when its cause is over. Controllers of library-go read everything again once a minute,
// and wait longer after an error.
const operatorSettles = 3 * time.Minute

// judgeEncrypted judges each time in which Encrypted was True by what lies in etcd and by what API servers were configured to write. That an operator never
// writes the condition is not judged.
func judgeEncrypted(v *facts.Facts) (f Finding) {
	states := v.CR.Of(contract.ConditionEncrypted)
	clear := clearTextOf(v)
	for _, s := range span.Where(states, isTrue) {
		f.judgedIn(s)
		if !clear.judgeUnder(v, &f, s) {
			clear.judgeEnded(v, &f, s, states)
			clear.judgeKept(v, &f, s)
		}
	}
	return f
}

func isTrue(s facts.State[history.Condition]) bool { return s.Value != nil && s.Value.Status == "True" }

// clearText is when API servers wrote clear text.
type clearText struct {
	configured []time.Time // when one was configured to
	some, all  span.Set    // when some were configured to, and when all did
}

func clearTextOf(v *facts.Facts) clearText {
	writesClear := func(providers []string) bool { return len(providers) > 0 && providers[0] == clearTextType }
	c, k := clearText{}, newKeepers(v)
	for e := range v.Each(keeperKinds()...) {
		k.apply(e)
		if x := e.Encryption; x != nil && x.State == history.EncryptionConfigured && writesClear(x.Providers) {
			c.configured = append(c.configured, e.At)
		}
		now, nodes := span.New(e.At, v.Period.To), k.nodes()
		c.some = cut(c.some, now, slices.ContainsFunc(nodes, func(n string) bool { return writesClear(k.configured[n]) }))
		c.all = cut(c.all, now, len(nodes) > 0 && !slices.ContainsFunc(nodes, func(n string) bool { return !writesClear(k.has(n, e.At)) }))
	}
	return c
}

// cut ends what has lasted until now, or begins it.
func cut(s span.Set, now span.Span, is bool) span.Set {
	last := len(s) - 1
	lasts := last >= 0 && s[last].To.Equal(now.To)
	switch {
	case is && !lasts:
		return append(s, now)
	case !is && lasts && s[last].From.Equal(now.From):
		return s[:last]
	case !is && lasts:
		s[last].To = now.From
	}
	return s
}

// since is the first time after the beginning of a span at which an API server was configured to write clear text; the end of the span if none was.
func (c clearText) since(s span.Span) time.Time {
	for _, at := range c.configured {
		if at.After(s.From) && at.Before(s.To) {
			return at
		}
	}
	return s.To
}

// judgeUnder reports whether an object lay in clear text, although no API server had been configured to write clear text since the condition became True.
func (c clearText) judgeUnder(v *facts.Facts, f *Finding, s span.Span) bool {
	judged := span.New(s.From, c.since(s))
	for e := range v.Each(history.KindStorageInventory, history.KindData) {
		read, lies := e.At.Add(-v.Tolerance), ""
		switch d := e.Data; {
		case d == nil:
			read, lies = e.StorageInventory.From, inClear(e.StorageInventory)
		case d.Op == history.DataRaw && d.OK && d.Provider == clearTextType:
			lies = d.Object + " lies in clear text"
		}
		if lies != "" && judged.Contains(read) && judged.Contains(e.At) {
			f.Violate(Violation{At: e.At, Seq: e.Seq, Seen: lies + " while Encrypted is True since " + text.Short(s.From.Sub(v.Period.From)), Allowed: "Encrypted is True when no object of an encrypted resource lies in clear text"})
			return true
		}
	}
	return false
}

// inClear returns what an inventory has in clear text; empty if it has nothing, or was recorded without the time of its beginning.
func inClear(i *history.StorageInventory) string {
	for _, u := range i.Under {
		if u.Provider == clearTextType && !i.From.IsZero() {
			return fmt.Sprintf("%d objects lie in clear text, such as %s,", u.Count, u.Example)
		}
	}
	return ""
}

// judgeEnded: the condition ended although all API servers encrypt and clear text was not requested. An operator that cannot read its objects need not claim what
// it does not know.
func (c clearText) judgeEnded(v *facts.Facts, f *Finding, s span.Span, states []facts.State[history.Condition]) {
	i := slices.IndexFunc(states, func(x facts.State[history.Condition]) bool { return x.From.Equal(s.To) })
	if i < 0 || c.since(s).Before(s.To) || c.some.Contains(s.To) || askedForClearText(v, s) {
		return
	}
	next := states[i]
	if (next.Value == nil || next.Value.Status == "Unknown") && slices.ContainsFunc(conditionsTrue(v, s.To), isControllerDegraded) {
		return
	}
	f.Violate(Violation{Rule: "held", At: s.To, Seq: next.Seq, Seen: "Encrypted was True, and is " + text.Condition(next.Value) + ", while all API servers write with a key",
		Allowed: "True until API servers are to write clear text"})
}

// askedForClearText reports whether clear text was what an administrator wanted at any time of a span.
func askedForClearText(v *facts.Facts, s span.Span) (asked bool) {
	for _, a := range v.Actions.All {
		switch {
		case a.Verb != "apiserver" || a.Param("expect") == refusedByAPI:
		case a.From.After(s.To):
			return asked
		case a.From.Before(s.From):
			asked = a.Param("type") == clearTextType
		default:
			asked = asked || a.Param("type") == clearTextType
		}
	}
	return asked
}

// clearTextType is the type, and the provider, of what is not encrypted.
const clearTextType = "identity"

// refusedByAPI is the parameter expect of an action whose configuration the API does not take.
const refusedByAPI = "refused"

// judgeKept: the condition was True for too long after all API servers wrote clear text.
func (c clearText) judgeKept(v *facts.Facts, f *Finding, s span.Span) {
	for _, x := range c.all.Intersect(undisturbed(v, false)).Clip(s) {
		if to := x.From.Add(operatorSettles + v.Tolerance); to.Before(x.To) {
			f.Violate(Violation{Rule: "decrypted", At: to, Timed: true, From: x.From, To: to, Seen: "Encrypted is True, and all API servers have written clear text for " + text.Short(operatorSettles),
				Allowed: "False, or no condition"})
			return
		}
	}
}

// conditionsTrue are the types of conditions of the CR that were True at an instant.
func conditionsTrue(v *facts.Facts, at time.Time) (types []string) {
	for t := range v.CR.States {
		if span.Where(v.CR.Of(t), isTrue).Contains(at) {
			types = append(types, t)
		}
	}
	return types
}

// isControllerDegraded reports whether a condition is the Degraded one of an encryption controller.
func isControllerDegraded(conditionType string) bool {
	return strings.HasPrefix(conditionType, "Encryption") && strings.HasSuffix(conditionType, "ControllerDegraded")
}
