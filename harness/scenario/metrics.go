package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// metrics is the variable of expressions that only a reporter with a metrics endpoint gives a value.
var metrics = regexp.MustCompile(`\bmetrics[\[.]`)

// WithoutMetrics gives the scenario without what its expectations demand of metrics, and the places of these. A part of an expectation is left out where
// it is joined by &&; of one of which nothing remains, only the time is kept. all reports whether no expectation remains.
func (s *Scenario) WithoutMetrics() (out *Scenario, left []string, all bool) {
	all = true
	out, left = s.rewritten(func(e Expectation) Expectation {
		e.CEL = without(e.CEL, metrics.MatchString)
		all = all && e.CEL == ""
		return e
	})
	return out, left, all
}

// rewritten gives the scenario with other expectations, and the places of those that differ. Of an expectation whose expression becomes empty, only the
// time is kept.
func (s *Scenario) rewritten(rewrite func(Expectation) Expectation) (out *Scenario, places []string) {
	copied := *s
	copied.Steps, places = rewritten(s.Steps, "steps", rewrite)
	return &copied, places
}

func rewritten(steps []Step, at string, rewrite func(Expectation) Expectation) (out []Step, places []string) {
	out = slices.Clone(steps)
	for i := range out {
		s, at := &out[i], fmt.Sprintf("%s[%d]", at, i)
		var below []string
		s.Parallel, below = rewritten(s.Parallel, at+".parallel", rewrite)
		places = append(places, below...)
		if s.Repeat != nil {
			repeat := *s.Repeat
			repeat.Steps, below = rewritten(repeat.Steps, at+".repeat", rewrite)
			s.Repeat, places = &repeat, append(places, below...)
		}
		if s.Expect == nil {
			continue
		}
		e := rewrite(*s.Expect)
		if e == *s.Expect {
			continue
		}
		places = append(places, at)
		switch {
		case e.CEL != "":
			s.Expect = &e
		case e.Mode == ModeWithin:
			s.Expect, s.Wait = nil, D("0s")
		default:
			s.Expect, s.Wait = nil, e.Bound
		}
	}
	return out, places
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
