// Package starvation measures CPU starvation: time in which a process could have run and got no processor.
//
// There is one recorder for a run, a Watch in the harness. It notices that it was woken late: then most likely nothing ran on this machine. And it reads
// for how long the threads of some other processes waited for a processor, which Linux counts for each thread. A process of a lower priority, or one in a
// container with a limit, can wait while the harness runs.
//
// A backend lets it read etcd and the API servers, and no program under test. They have work all the time and at most the priority of anything else on
// their node, so they wait whenever something waits there: of 121 waits that 67 saved histories have of programs under test, 119 were within half a second
// of a wait of the harness, of etcd or of an API server. And a program under test cannot excuse itself by what is recorded of it.
//
// harness/check decides what starvation explains.
package starvation

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/internal/poll"
)

const (
	// every is the period of waking: fine enough to see starvation to a tenth of the smallest tolerance of a backend (500 ms), and coarse enough to
	// cost nothing.
	every = 50 * time.Millisecond
	// Late is how much later than that a waking must come to count. Less than that happens all the time on two cores, and is what tolerances are
	// for: three such delays in a chain still fit in the smallest one.
	Late = 150 * time.Millisecond
	// period is how often other processes are read: often enough to say when a thread waited, and seldom enough to cost less than a hundredth of a
	// processor for a control plane of three nodes.
	period = 500 * time.Millisecond
	// waited is how long a process must be delayed in that time to count. A request passes through four processes, one after another: four times less
	// than that fits in the smallest tolerance.
	waited = 100 * time.Millisecond
)

// Span is a time in which a process waited. PID 0 is this process: it was woken late.
type Span struct {
	PID      int
	From, To time.Time
}

// Watch records starvation while Run runs.
type Watch struct {
	// Processes returns the processes to read; nil: none but this one.
	Processes func() []int
	// Record receives each wait, in the goroutine of Run.
	Record func(Span)

	woken, read time.Time
	queues      map[int]*queue
}

// Run returns when ctx ends.
func (w *Watch) Run(ctx context.Context) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	w.woken = time.Now()
	w.read = w.woken
	poll.Each(ctx, ticker.C, func() { w.wake(time.Now()) })
}

// wake handles a waking. Times of time.Now have a monotonic reading, so a clock that is set is no starvation.
func (w *Watch) wake(now time.Time) {
	if late := now.Sub(w.woken) - every; late >= Late {
		w.Record(Span{From: now.Add(-late), To: now})
	}
	w.woken = now
	if since := now.Sub(w.read); w.Processes != nil && since >= period {
		w.readQueues(now, since)
		w.read = now
	}
}

// readQueues reads all processes. Where the system does not count, nothing is known of their waits.
func (w *Watch) readQueues(now time.Time, since time.Duration) {
	queues := map[int]*queue{}
	for _, pid := range w.Processes() {
		q := cmp.Or(w.queues[pid], &queue{})
		delayed, err := q.read(pid, since)
		if err != nil {
			w.Processes = nil
			return
		}
		if delayed >= waited {
			w.Record(Span{pid, now.Add(-delayed), now})
		}
		queues[pid] = q
	}
	w.queues = queues
}

// Named returns the processes of this machine that have one of the names, those in containers of an engine on this machine are
// among them. There are none where the system does not show them.
func Named(names ...string) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		name, err := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
		if err == nil && slices.Contains(names, strings.TrimSpace(string(name))) {
			pids = append(pids, pid)
		}
	}
	return pids
}
