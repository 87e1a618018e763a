package check

import "time"

func monotonic() Invariant {
	return Invariant{
		ID:        "MONOTONIC",
		Statement: "lastChecked of one (node, keyID) never goes back",
		Source:    "The reporter, emission",
		judge:     judgeMonotonic,
	}
}

func judgeMonotonic(v *view) (f Finding) {
	for _, node := range v.reportingNodes() {
		last := map[string]time.Time{}
		for _, c := range v.reports[node] {
			if c.rep == nil || c.rep.foreign {
				continue
			}
			for _, e := range c.rep.entries {
				at, known := v.instant(node, e)
				if !known {
					continue
				}
				e.checked = at
				f.judgedAt(c.at, c.at)
				if before := last[e.keyID]; e.checked.Before(before) {
					f.violate(Violation{At: c.at, Seq: c.seq, Node: node, KeyID: e.keyID, Seen: "lastChecked " + e.checkedText + " after " + before.Format(time.RFC3339Nano),
						Allowed: "the same instant or a later one"})
				}
				last[e.keyID] = latest(last[e.keyID], e.checked)
			}
		}
	}
	return f
}
