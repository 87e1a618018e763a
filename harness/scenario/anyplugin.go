package scenario

import (
	"regexp"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
)

// What an expression demands of the health of a plugin that cannot use its KMS: a status, and words of the fake plugin.
var (
	reportedUnhealthy = regexp.MustCompile(`\.status == ["']` + string(contract.StatusUnhealthy) + `["']`)
	reportedDetail    = regexp.MustCompile(`\.detail\.contains\("[^"]*"\)`)
)

// OfAnyPlugin gives the scenario with expectations that any plugin can meet, and the places of those that differ. Where a scenario takes the KMS away, the
// fake plugin answers with a healthz text of its own. Another plugin may answer with an error instead, and in its own words.
func (s *Scenario) OfAnyPlugin() (out *Scenario, changed []string) {
	touched := false
	for _, a := range s.Actions() {
		_, isKMS := a.(*KMS)
		touched = touched || isKMS
	}
	if !touched {
		return s, nil
	}
	copied := *s
	copied.Steps, changed = rewritten(s.Steps, "steps", func(e Expectation) string {
		cel := reasonOfRollup.ReplaceAllStringFunc(e.CEL, func(atom string) string {
			if strings.Contains(atom, contract.ReasonPluginUnhealthy) || strings.Contains(atom, contract.ReasonPluginUnreachable) {
				return StatusForReason(atom)
			}
			return atom
		})
		cel = reportedUnhealthy.ReplaceAllString(cel, `.status != "`+string(contract.StatusHealthy)+`"`)
		return reportedDetail.ReplaceAllString(cel, `.detail != ""`)
	})
	return &copied, changed
}
