package live

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator/core"
)

// decide is core.Decide, and leaves in the history what came of it.
func (p *pods) decide(o core.Observed, opts core.Options, now time.Time) core.Plan {
	plan := core.Decide(o, opts, now)
	p.decidedOn(operated.Decision(o, plan))
	return plan
}

// decidedOn leaves a decision in the history if it is news, and keeps the load in step. Of an operator under test it is what its objects say.
func (p *pods) decidedOn(d *history.Decision) {
	p.mu.Lock()
	news := p.decided == nil || !operated.Same(*p.decided, *d)
	p.decided = d
	p.mu.Unlock()
	if news {
		p.e.record(d)
	}
	p.load.switching(d.Stage != "")
}
