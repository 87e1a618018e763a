package core

import (
	"fmt"

	"github.com/kmsharness/kmsharness/contract"
)

// rank is a row of the table of KMSPluginsDegraded, worst first.
type rank int

const (
	unhealthy rank = iota
	unreachable
	stale
	malformed
	skewed
	missing
	awaiting
)

// verdict is the status and reason of a row.
func (r rank) verdict() (status, reason string) {
	switch r {
	case unhealthy:
		return True, contract.ReasonPluginUnhealthy
	case unreachable:
		return True, contract.ReasonPluginUnreachable
	case stale:
		return Unknown, contract.ReasonReportStale
	case malformed:
		return Unknown, contract.ReasonReportMalformed
	case skewed:
		return Unknown, contract.ReasonClockSkew
	case missing:
		return Unknown, contract.ReasonReportMissing
	default:
		return False, contract.ReasonAwaitingFirstReport
	}
}

// degraded is KMSPluginsDegraded. The first two rows are decided per entry, by its own freshness, so that a stuck
// plugin hides no other; the rest per report. The worst row names the reason, the message names all of them.
func degraded(nodes []node) Condition {
	var lines []line
	plugins := 0
	for _, n := range nodes {
		lines = append(lines, n.complaints()...)
		plugins += len(n.entries)
	}
	if len(lines) == 0 {
		text := fmt.Sprintf("%s freshly reported healthy by %s", count(plugins, "plugin"), count(len(nodes), "node"))
		return Condition{Type: contract.ConditionDegraded, Status: False, Reason: contract.ReasonAsExpected, Message: text}
	}
	worst := lines[0].rank
	for _, l := range lines {
		worst = min(worst, l.rank)
	}
	status, reason := worst.verdict()
	return Condition{Type: contract.ConditionDegraded, Status: status, Reason: reason, Message: message(lines)}
}

// complaints are everything that is not as it should be about one node.
func (n node) complaints() []line {
	var lines []line
	for _, e := range n.entries {
		if r, text, bad := e.complaint(); bad {
			lines = append(lines, line{r, plugin(n.name, e.KeyID), text})
		}
	}
	for _, p := range n.problems {
		lines = append(lines, line{malformed, safeName(n.name), p})
	}
	switch {
	case n.reported && len(n.entries) == 0 && len(n.problems) == 0:
		lines = append(lines, line{malformed, safeName(n.name), "report holds no entry"})
	case n.overdue:
		lines = append(lines, line{missing, safeName(n.name), "no report within the grace for the first one"})
	case !n.reported:
		lines = append(lines, line{awaiting, safeName(n.name), "awaiting the first report"})
	}
	return lines
}

func (e entry) complaint() (r rank, text string, bad bool) {
	switch {
	case e.freshness == contract.Stale:
		return stale, "report is stale, last known " + string(e.Status), true
	case e.freshness == contract.Skewed:
		return skewed, "checked in the future, clocks differ by more than the interval", true
	case e.Status == contract.StatusUnhealthy:
		return unhealthy, e.outcome(), true
	case e.Status == contract.StatusError:
		return unreachable, e.outcome(), true
	default:
		return 0, "", false
	}
}

// outcome is status and detail. The detail comes from others and is made safe once more.
func (e entry) outcome() string {
	if detail := contract.SafeDetail(e.Detail); detail != "" {
		return string(e.Status) + ": " + detail
	}
	return string(e.Status)
}
