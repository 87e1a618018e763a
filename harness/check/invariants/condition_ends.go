package invariants

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// judgeConditionEnds judges the conditions of the encryption controllers while API servers have what the administrator asks for: what remains then is the
// complaint of a request that was refused or withdrawn, and administrators learn to ignore it.
func judgeConditionEnds(v *facts.Facts) (f Finding) {
	if v.Run.Lifecycle != history.LifecycleOperator {
		return f
	}
	judgeIn := func(quiet span.Set, judged func(conditionType string) bool) {
		for _, s := range quiet {
			if s.Length() > operatorSettles+v.Tolerance {
				f.judgedIn(s)
			}
		}
		for _, t := range slices.Sorted(maps.Keys(v.CR.States)) {
			if !judged(t) || writtenByScenario(v, t) {
				continue
			}
			states := v.CR.Of(t)
			for _, s := range span.Where(states, isTrue).Intersect(quiet) {
				if to := s.From.Add(operatorSettles + v.Tolerance); to.Before(s.To) {
					stands := states[slices.IndexFunc(states, func(x facts.State[history.Condition]) bool { return x.Contains(to) })]
					f.Violate(Violation{At: to, Timed: true, From: s.From, To: to, Allowed: "False, or no condition",
						Seen: "API servers have had what is asked for, without a fault, for " + text.Short(operatorSettles) + ", and the CR has " + text.Condition(stands.Value)})
				}
			}
		}
	}
	local, kms := inForce(v)
	judgeIn(local.Intersect(undisturbed(v, false)), func(t string) bool { return isControllerDegraded(t) || isControllerProgressing(t) })
	judgeIn(kms.Intersect(undisturbed(v, true)), isControllerDegraded)
	return f
}

func isControllerProgressing(conditionType string) bool {
	return strings.HasPrefix(conditionType, "Encryption") && strings.HasSuffix(conditionType, "ControllerProgressing")
}

func writtenByScenario(v *facts.Facts, conditionType string) bool {
	return slices.ContainsFunc(v.Actions.All, func(a facts.Action) bool { return a.Verb == "condition" && a.Param("type") == conditionType })
}

// inForce is when all API servers have one configuration, and every object lies under its writer, which is of the type that was asked for last: without KMS, and
// with it. Of KMS it is nothing once two different ones were asked for: which of them a key is for is not known.
func inForce(v *facts.Facts) (local, kms span.Set) {
	k, asked, vaults := newKeepers(v), "", map[string]bool{}
	for e := range v.Each(keeperKinds(history.KindAction)...) {
		k.apply(e)
		if a := e.Action; a != nil && a.Verb == "apiserver" && a.State == history.ActionBegan && a.Param("expect") != refusedByAPI {
			asked = a.Param("type")
			if asked == kmsType {
				vaults[fmt.Sprint(a.Params)] = true
			}
		}
		writer, now := k.common(e.At), span.New(e.At, v.Period.To)
		of, _, _ := strings.Cut(writer, "-")
		has := writer != "" && writer == k.migrated && strings.EqualFold(of, asked)
		local = cut(local, now, has && asked != kmsType)
		kms = cut(kms, now, has && asked == kmsType && len(vaults) == 1)
	}
	return local, kms
}

// kmsType is the type of encryption by plugins.
const kmsType = "KMS"

// common is the writer of all API servers, if they have all loaded the configuration that all were given last; else empty.
func (k *keepers) common(at time.Time) string {
	nodes := k.nodes()
	if len(nodes) == 0 || len(nodes) < len(k.expected) {
		return ""
	}
	first := k.configured[nodes[0]]
	for _, n := range nodes {
		if !slices.Equal(k.configured[n], first) || !slices.Equal(k.has(n, at), first) {
			return ""
		}
	}
	return first[0]
}

// undisturbed is when the operator of the newest release led and no fault was in force that it can notice: one that was started again waits for the
// lease. With KMS in force all faults of plugins and their KMS count, also those that are over; without it none.
func undisturbed(v *facts.Facts, withKMS bool) span.Set {
	runs := v.Processes.While(facts.Process{Role: history.RoleOperator}, facts.Up)
	if len(runs) > 1 {
		runs = slices.Concat(runs[:1], runs[1:].Settled(operatorStarts))
	}
	faults := span.Map(v.Refusals.All, func(r facts.Refusal) span.Span { return r.Span })
	for kind, when := range v.Actions.FaultWindows(0, v.Period.To) {
		switch ofPlugins := ofPlugins(kind); {
		case ofPlugins && withKMS:
			faults = faults.Union(span.Set{span.New(when.Begin(), v.Period.To)})
		case !ofPlugins && !strings.HasPrefix(kind, "refuse "): // which may end by itself
			faults = faults.Union(when)
		}
	}
	return runs.Intersect(faults.Union(olderRelease(v)).Complement(v.Period))
}

// ofPlugins reports whether a kind of fault is one of plugins, their KMS, or reports.
func ofPlugins(kind string) bool {
	first, _, _ := strings.Cut(kind, " ")
	return slices.Contains([]string{history.RolePlugin, "kms", "credential", "rotate", "foreign", history.RoleReporter, history.RoleAggregator, history.RoleRemoteKMS}, first)
}

// olderRelease is when the operator was one of an older release, which cannot read what a newer one has made.
func olderRelease(v *facts.Facts) (older span.Set) {
	for _, a := range v.Actions.All {
		if release := a.Param("release"); release != "" {
			older = cut(older, span.New(a.From, v.Period.To), release == "older")
		}
	}
	return older
}
