package scenario

import (
	"regexp"

	"github.com/kmsharness/kmsharness/contract"
)

// reasonOfRollup is what an expression demands of the reason of a rollup, or of a condition of the ClusterOperator.
var reasonOfRollup = regexp.MustCompile(`\b((?:rollup|clusterOperator)\.(degraded|available|progressing))\.reason == ["'](\w+)["']`)

// statuses are those that the reasons of the contract stand beside.
func statuses() map[string]map[string]string {
	return map[string]map[string]string{
		"degraded": {
			contract.ReasonPluginUnhealthy: "True", contract.ReasonPluginUnreachable: "True", contract.ReasonReportStale: "Unknown", contract.ReasonReportMalformed: "Unknown",
			contract.ReasonClockSkew: "Unknown", contract.ReasonReportMissing: "Unknown", contract.ReasonAwaitingFirstReport: "False", contract.ReasonAsExpected: "False",
		},
		"available":   {contract.ReasonNoUsableWriteKey: "False", contract.ReasonWriteKeyUnknown: "Unknown", contract.ReasonAsExpected: "True"},
		"progressing": {contract.ReasonKEKRotationInProgress: "True", contract.ReasonKeyMigrationInProgress: "True", contract.ReasonNotConverged: "False", contract.ReasonAsExpected: "False"},
	}
}

// StatusesOnly gives the scenario with expectations of the status that goes with a reason where they demand the reason, and the places of these: reasons are
// decisions of this project, which the aggregator of somebody else need not share. What must never have a reason may have its status: of that, only the time is
// kept.
func (s *Scenario) StatusesOnly() (out *Scenario, changed []string) {
	copied := *s
	copied.AnyReason = true
	copied.Steps, changed = rewritten(s.Steps, "steps", func(e Expectation) string {
		if e.Mode == ModeNever && reasonOfRollup.MatchString(e.CEL) {
			return ""
		}
		return StatusForReason(e.CEL)
	})
	return &copied, changed
}

// StatusForReason is an expression that demands the status that goes with a reason where it demanded the reason of a rollup.
func StatusForReason(cel string) string {
	return reasonOfRollup.ReplaceAllStringFunc(cel, func(atom string) string {
		m := reasonOfRollup.FindStringSubmatch(atom)
		status, known := statuses()[m[2]][m[3]]
		if !known {
			return atom
		}
		return m[1] + `.status == "` + status + `"`
	})
}
