package page

import "slices"

// beside are the kinds of rows that matter only when something happens in them.
var beside = []rowKind{rowHarness, rowAggregator, rowAggregatorWrites, rowOperator, rowForeign, rowAPIServer, rowPlugin, rowReporter, rowEnvelopeCalls,
	rowMetrics, rowLoadBalancer, rowEtcd, rowRemoteKMS, rowHops}

// markDull finds the rows beside the point in which all was well: no mark, and nothing but good news. The more there is to see, the less is
// seen.
func (b *builder) markDull() {
	for i, p := range b.lanes.all {
		b.out.Rows[i].Dull = slices.Contains(beside, p.row)
	}
	for _, e := range b.out.Events {
		b.out.Rows[e.Row].Dull = b.out.Rows[e.Row].Dull && calm(e.Class)
	}
	for _, s := range b.out.States {
		b.out.Rows[s.Row].Dull = b.out.Rows[s.Row].Dull && calm(s.Class)
	}
	for _, m := range b.out.Marks {
		if m.Target >= 0 {
			b.out.Rows[m.Target].Dull = false
		}
	}
}

func calm(c Class) bool { return c == OK || c == Quiet || c == Note }
