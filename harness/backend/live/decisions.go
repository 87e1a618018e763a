package live

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/operator/core"
)

// decide is core.Decide, and leaves in the history what came of it.
func (p *pods) decide(o core.Observed, opts core.Options, now time.Time) core.Plan {
	plan := core.Decide(o, opts, now)
	d := operated.Decision(o, plan)
	p.mu.Lock()
	news := p.decided == nil || !operated.Same(*p.decided, *d)
	p.decided = d
	p.mu.Unlock()
	if news {
		p.e.record(d)
	}
	p.switching(d.Stage != "")
	return plan
}
