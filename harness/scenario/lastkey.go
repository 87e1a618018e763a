package scenario

import (
	"regexp"
	"strings"
)

// What an expression demands of the plugins of keys that are no longer needed: that their reports, their providers or they themselves are gone.
var goneWithItsKey = regexp.MustCompile(`^(reports\.size\(\) == [0-9]+|!\("[^"]*" in report\["[^"]*"\]\)|encryption\["[^"]*"\] == \[.*\]|process\["plugin"\]\.all\(.*== "stopped"\))$`)

// WithLastKey gives the scenario without expectations that the plugin of an old key is gone, and the places of those that differ. OpenShift's operators keep
// the last old key, with its plugin and its reports, until the next one is migrated.
func (s *Scenario) WithLastKey() (out *Scenario, changed []string) {
	copied := *s
	copied.LastKeyStays = true
	copied.Steps, changed = rewritten(s.Steps, "steps", func(e Expectation) string {
		if e.Mode == ModeNever {
			return e.CEL
		}
		var kept []string
		for _, c := range conjuncts(e.CEL) {
			if !goneWithItsKey.MatchString(strings.TrimSpace(c)) {
				kept = append(kept, strings.TrimSpace(c))
			}
		}
		if len(kept) == len(conjuncts(e.CEL)) {
			return e.CEL
		}
		return strings.Join(kept, " && ")
	})
	return &copied, changed
}
