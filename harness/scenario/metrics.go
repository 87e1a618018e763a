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
	kept := 0
	copied := *s
	copied.Steps, left = rewritten(s.Steps, "steps", func(e Expectation) string {
		rest := slices.DeleteFunc(conjuncts(e.CEL), metrics.MatchString)
		if len(rest) == len(conjuncts(e.CEL)) {
			kept++
			return e.CEL
		}
		kept += min(len(rest), 1)
		return strings.Join(rest, " && ")
	})
	return &copied, left, kept == 0
}

// rewritten gives steps with other expressions, and the places of those that differ. Of an expectation whose expression becomes empty, only the time
// is kept.
func rewritten(steps []Step, at string, rewrite func(Expectation) string) (out []Step, places []string) {
	out = slices.Clone(steps)
	for i := range out {
		s, at := &out[i], fmt.Sprintf("%s[%d]", at, i)
		var below []string
		s.Parallel, below = rewritten(s.Parallel, at+"."+keyParallel, rewrite)
		places = append(places, below...)
		if s.Repeat != nil {
			repeat := *s.Repeat
			repeat.Steps, below = rewritten(repeat.Steps, at+"."+keyRepeat, rewrite)
			s.Repeat, places = &repeat, append(places, below...)
		}
		if s.Expect == nil {
			continue
		}
		switch cel := rewrite(*s.Expect); {
		case cel == s.Expect.CEL:
			continue
		case cel != "":
			expect := *s.Expect
			expect.CEL = cel
			s.Expect = &expect
		case s.Expect.Mode == ModeWithin:
			s.Expect, s.Wait = nil, D("0s")
		default:
			s.Expect, s.Wait = nil, s.Expect.Bound
		}
		places = append(places, at)
	}
	return out, places
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
