package kernel

import (
	"context"
	"time"
)

// Wait lets time pass until Wake was called, until an instant (zero: without limit) is reached, or ctx ends. What is due at that
// very instant has happened then.
func (k *Kernel) Wait(ctx context.Context, until time.Time) {
	if !until.IsZero() && !until.After(k.now) {
		return
	}
	for n := 0; !k.woken; n++ {
		if n%patience == 0 && ctx.Err() != nil {
			return
		}
		if !k.step(until) {
			k.idle(ctx, until)
			return
		}
	}
	k.woken = false
}

// patience is how many events may run before somebody looks whether the caller still wants them.
const patience = 256

func (k *Kernel) idle(ctx context.Context, until time.Time) {
	if until.IsZero() {
		<-ctx.Done() // nothing will ever happen
		return
	}
	k.now = until
}

// Wake ends the current Wait, or the next.
func (k *Kernel) Wake() { k.woken = true }
