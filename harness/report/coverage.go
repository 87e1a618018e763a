package report

import (
	"fmt"
	"strings"

	"github.com/kmsharness/kmsharness/harness/check"
)

// coverage is in how many scenarios of an invocation each invariant judged something.
type coverage struct {
	order  []string
	judged map[string]int
}

// CoverageOf is a line that says which invariants no scenario exercised: an invariant that judged nothing has not passed. It is empty if there is
// no verdict at all.
func CoverageOf(verdicts []check.Verdict) string {
	c := coverage{judged: map[string]int{}}
	for _, v := range verdicts {
		for _, i := range v.Invariants {
			c.count(i.ID, i.Judged)
		}
	}
	return c.line()
}

func (c *coverage) count(id string, judged int) {
	if _, known := c.judged[id]; !known {
		c.order = append(c.order, id)
		c.judged[id] = 0
	}
	if judged > 0 {
		c.judged[id]++
	}
}

func (c *coverage) line() string {
	if len(c.order) == 0 {
		return ""
	}
	var idle []string
	for _, id := range c.order {
		if c.judged[id] == 0 {
			idle = append(idle, id)
		}
	}
	line := fmt.Sprintf("invariants: %d of %d were exercised", len(c.order)-len(idle), len(c.order))
	if len(idle) > 0 {
		line += "; judged nothing: " + strings.Join(idle, ", ")
	}
	return line
}
