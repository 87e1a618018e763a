package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kmsharness/kmsharness/harness/result"

	"github.com/kmsharness/kmsharness/harness/check"
)

// coverage is in how many scenarios of an invocation each invariant judged something.
type coverage struct {
	order  []string
	judged map[string]int
}

// Coverage is a line that says which invariants no scenario below out exercised: an invariant that judged nothing has
// not passed, and who reads the verdict should know. It is empty if there is no verdict at all.
func Coverage(out string) (string, error) {
	files, err := filepath.Glob(filepath.Join(out, "*", result.VerdictJSON))
	if err != nil {
		return "", fmt.Errorf("coverage of invariants: %w", err)
	}
	c := coverage{judged: map[string]int{}}
	for _, file := range files {
		if err := c.add(file); err != nil {
			return "", fmt.Errorf("coverage of invariants: %w", err)
		}
	}
	return c.line(), nil
}

// CoverageOf is the same of verdicts that were given just now.
func CoverageOf(verdicts []check.Verdict) string {
	c := coverage{judged: map[string]int{}}
	for _, v := range verdicts {
		for _, i := range v.Invariants {
			c.count(i.ID, i.Judged)
		}
	}
	return c.line()
}

func (c *coverage) add(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var v struct {
		Invariants []struct {
			ID     string `json:"id"`
			Judged int    `json:"judged"`
		} `json:"invariants"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, i := range v.Invariants {
		c.count(i.ID, i.Judged)
	}
	return nil
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
