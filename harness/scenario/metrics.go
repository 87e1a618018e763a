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
	copied := *s
	kept := 0
	copied.Steps = withoutMetrics(s.Steps, "steps", &left, &kept)
	return &copied, left, kept == 0
}

func withoutMetrics(steps []Step, at string, left *[]string, kept *int) []Step {
	steps = slices.Clone(steps)
	for i := range steps {
		s, at := &steps[i], fmt.Sprintf("%s[%d]", at, i)
		s.Parallel = withoutMetrics(s.Parallel, at+"."+wordParallel, left, kept)
		if s.Repeat != nil {
			repeat := *s.Repeat
			repeat.Steps = withoutMetrics(repeat.Steps, at+"."+wordRepeat, left, kept)
			s.Repeat = &repeat
		}
		if s.Expect == nil {
			continue
		}
		parts := conjuncts(s.Expect.CEL)
		rest := slices.DeleteFunc(slices.Clone(parts), metrics.MatchString)
		switch {
		case len(rest) == len(parts):
			*kept++
			continue
		case len(rest) > 0:
			*kept++
			expect := *s.Expect
			expect.CEL = strings.Join(rest, " && ")
			s.Expect = &expect
		case s.Expect.Mode == ModeWithin:
			s.Expect, s.Wait = nil, D("0s")
		default:
			s.Expect, s.Wait = nil, s.Expect.Bound
		}
		*left = append(*left, at)
	}
	return steps
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
