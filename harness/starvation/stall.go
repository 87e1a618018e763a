// Package starvation measures CPU starvation: time in which the machine gave a process no processor.
//
// A watch wakes at a fixed interval. If it wakes late, nothing in its process ran meanwhile, and most likely nothing
// beside it either: in the harness because the machine was busy, in a container (harness/supervisor) perhaps in that
// container only.
//
// Linux counts how long other processes waited for a processor (Queue). A process of a lower priority may wait while
// this process runs.
//
// The package has the interval, the limit for a late wake-up, the watch and the queue. harness/supervisor and the
// backends record starvation; harness/check decides what it explains.
package starvation

import (
	"context"
	"time"
)

const (
	// Every is the beat: fine enough to see a stall to a tenth of the smallest tolerance of a backend (500 ms), and coarse enough to
	// cost nothing: twenty wakings a second.
	Every = 50 * time.Millisecond
	// Late is how much later than the beat a waking must come to count. Less than that happens all the time on two cores, and is what
	// tolerances are for: three such delays in a chain still fit in the smallest one. More than that eats a third of it.
	Late = 150 * time.Millisecond
)

// Span is a time in which nothing ran.
type Span struct{ From, To time.Time }

// Detector turns wakings into stalls. The zero value waits for its first waking.
type Detector struct{ last time.Time }

// Wake is told of a waking. Where times carry a monotonic reading, as time.Now's do, a clock that is set is no stall.
func (d *Detector) Wake(now time.Time) (s Span, stalled bool) {
	last := d.last
	d.last = now
	if last.IsZero() {
		return Span{}, false
	}
	late := now.Sub(last) - Every
	if late < Late {
		return Span{}, false
	}
	return Span{From: now.Add(-late), To: now}, true
}

// Watch tells of stalls until ctx ends. beat is a ticker of Every that drops what is not taken, as time.Ticker does.
func Watch(ctx context.Context, beat <-chan time.Time, now func() time.Time, tell func(Span)) {
	var d Detector
	d.Wake(now())
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat:
			if s, stalled := d.Wake(now()); stalled {
				tell(s)
			}
		}
	}
}

// Run is Watch with a ticker and the clock of this machine.
func Run(ctx context.Context, tell func(Span)) {
	ticker := time.NewTicker(Every)
	defer ticker.Stop()
	Watch(ctx, ticker.C, time.Now, tell)
}
