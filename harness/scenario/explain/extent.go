package explain

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// extents computes until when the effect of each action lasts: until a step ends it, its own time is over, or the steps are.
func (l *timeline) extents(end time.Duration) {
	for i, a := range l.actions {
		if a == nil || !scenario.Lasts(a) {
			continue
		}
		l.rows[i].Lasts = end
		if b, ok := a.(interface{ Bound() scenario.Duration }); ok {
			if d := l.resolve(b.Bound()); d > 0 {
				l.rows[i].Lasts = min(end, l.rows[i].Begin.Latest+d)
			}
		}
		for j := i + 1; j < len(l.actions); j++ {
			if b := l.actions[j]; b != nil && scenario.Ends(b, a) {
				l.rows[i].Lasts = min(l.rows[i].Lasts, l.rows[j].Begin.Latest)
				break
			}
		}
	}
}
