package core

import (
	"github.com/kmsharness/kmsharness/contract"
)

// available is KMSPluginsAvailable: False when some expected node's write-key plugin freshly fails, Unknown when
// some node should have been heard of and was not, else True. A node that still awaits its first report takes
// nothing away: absence is "not yet observed".
func available(nodes []node) Condition {
	var unusable, unknown []line
	for _, n := range nodes {
		switch e, ok := n.writeKey(); {
		case ok && e.freshness == contract.Fresh && e.Status != contract.StatusHealthy:
			unusable = append(unusable, line{key: plugin(n.name, e.KeyID), text: "write key is " + e.outcome()})
		case n.overdue || n.reported && !n.sound():
			unknown = append(unknown, line{key: safeName(n.name), text: "no fresh, well-formed report"})
		}
	}
	c := Condition{Type: contract.ConditionAvailable, Status: True, Reason: contract.ReasonAsExpected}
	switch {
	case len(unusable) > 0:
		c.Status, c.Reason, c.Message = False, contract.ReasonNoUsableWriteKey, message(append(unusable, ranked(unknown, 1)...))
	case len(unknown) > 0:
		c.Status, c.Reason, c.Message = Unknown, contract.ReasonWriteKeyUnknown, message(unknown)
	default:
		c.Message = "no write-key plugin is known to be unusable"
	}
	return c
}

func ranked(lines []line, r rank) []line {
	for i := range lines {
		lines[i].rank = r
	}
	return lines
}
