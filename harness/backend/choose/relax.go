package choose

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// A program under test need not share what is this project's own. The scenarios here demand less of it.

// metrics is the variable of expressions that only a reporter with a metrics endpoint gives a value.
var metrics = regexp.MustCompile(`\bmetrics[\[.]`)

// withoutMetrics gives the scenario without what its expectations demand of metrics, and the places of these. A part of an expectation is left out where
// it is joined by &&; of one of which nothing remains, only the time is kept. all reports whether no expectation remains.
func withoutMetrics(s *scenario.Scenario) (out *scenario.Scenario, left []string, all bool) {
	all = true
	out, left = s.Rewritten(func(e scenario.Expectation) scenario.Expectation {
		e.CEL = without(e.CEL, metrics.MatchString)
		all = all && e.CEL == ""
		return e
	})
	return out, left, all
}

// statusesOnly gives the scenario with expectations of the status that goes with a reason where they demand the reason, and the places of these: reasons are
// decisions of this project, which the aggregator of somebody else need not share. What must never have a reason may have its status: of that, only the time is
// kept.
func statusesOnly(s *scenario.Scenario) (out *scenario.Scenario, changed []string) {
	out, changed = s.Rewritten(func(e scenario.Expectation) scenario.Expectation {
		cel := scenario.StatusForReason(e.CEL)
		if e.Mode == scenario.ModeNever && cel != e.CEL {
			cel = ""
		}
		e.CEL = cel
		return e
	})
	out.AnyReason = true
	return out, changed
}

// What an expression demands of the plugins of keys that are no longer needed: that their reports, their providers or they themselves are gone.
var goneWithItsKey = regexp.MustCompile(`^(reports\.size\(\) == [0-9]+|!\("[^"]*" in report\["[^"]*"\]\)|encryption\["[^"]*"\] == \[.*\]|process\["plugin"\]\.all\(.*== "stopped"\))$`)

// withLastKey gives the scenario without expectations that the plugin of an old key is gone, and the places of those that differ. OpenShift's operators keep
// the last old key, with its plugin and its reports, until the next one is migrated.
func withLastKey(s *scenario.Scenario) (out *scenario.Scenario, changed []string) {
	out, changed = s.Rewritten(func(e scenario.Expectation) scenario.Expectation {
		if e.Mode != scenario.ModeNever {
			e.CEL = without(e.CEL, goneWithItsKey.MatchString)
		}
		return e
	})
	out.LastKeyStays = true
	return out, changed
}

// What an expression demands of the health of a plugin that cannot use its KMS: the reason of a rollup, a status, and words of the fake plugin.
var (
	reasonOfPlugin    = regexp.MustCompile(`\.degraded\.reason == ["'](` + contract.ReasonPluginUnhealthy + `|` + contract.ReasonPluginUnreachable + `)["']`)
	reportedUnhealthy = regexp.MustCompile(`\.status == ["']` + string(contract.StatusUnhealthy) + `["']`)
	reportedDetail    = regexp.MustCompile(`\.detail\.contains\("[^"]*"\)`)
)

// ofAnyPlugin gives the scenario with expectations that any plugin can meet, and the places of those that differ. Where a scenario takes the KMS away, the
// fake plugin answers with a healthz text of its own. Another plugin may answer with an error instead, and in its own words.
func ofAnyPlugin(s *scenario.Scenario) (out *scenario.Scenario, changed []string) {
	if !slices.ContainsFunc(s.Actions(), func(a scenario.Action) bool { return scenario.VerbOf(a) == "kms" }) {
		return s, nil
	}
	return s.Rewritten(func(e scenario.Expectation) scenario.Expectation {
		cel := reasonOfPlugin.ReplaceAllString(e.CEL, `.degraded.status == "True"`)
		cel = reportedUnhealthy.ReplaceAllString(cel, `.status != "`+string(contract.StatusHealthy)+`"`)
		e.CEL = reportedDetail.ReplaceAllString(cel, `.detail != ""`)
		return e
	})
}

// seconds is a duration of real time alone.
var seconds = regexp.MustCompile(`^([0-9]+)(s|m)$`)

// patient gives the scenario with times within which something is expected multiplied, where they are of real time: those do not follow from the
// contract, and a slower program than this project's may need more. factor is 1 or more.
func patient(s *scenario.Scenario, factor int) *scenario.Scenario {
	out, _ := s.Rewritten(func(e scenario.Expectation) scenario.Expectation {
		m := seconds.FindStringSubmatch(e.Bound.Text)
		if e.Mode != scenario.ModeWithin || m == nil {
			return e
		}
		if n, err := strconv.Atoi(m[1]); err == nil { // otherwise it is too large to be valid
			e.Bound = scenario.D(strconv.Itoa(n*factor) + m[2])
		}
		return e
	})
	return out
}

// without is an expression without those parts that && joins which are left out.
func without(cel string, left func(string) bool) string {
	parts := conjuncts(cel)
	if kept := slices.DeleteFunc(slices.Clone(parts), left); len(kept) < len(parts) {
		return strings.Join(kept, " && ")
	}
	return cel
}

// conjuncts are the parts of an expression that && joins outside of parentheses, brackets and texts; the whole expression if || stands there, too.
func conjuncts(cel string) []string {
	var parts []string
	depth, quote, from := 0, byte(0), 0
	for i := 0; i < len(cel); i++ {
		switch c := cel[i]; {
		case quote != 0:
			if c == '\\' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		case depth == 0 && strings.HasPrefix(cel[i:], "||"):
			return []string{cel}
		case depth == 0 && strings.HasPrefix(cel[i:], "&&"):
			parts = append(parts, strings.TrimSpace(cel[from:i]))
			i++
			from = i + 1
		}
	}
	return append(parts, strings.TrimSpace(cel[from:]))
}
