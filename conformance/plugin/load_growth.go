package plugin

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	kmsapi "k8s.io/kms/apis/v2"
)

// resource is what a plugin's process uses, and how much more it may use after many calls.
type resource struct {
	what           string
	calls, callers int
	// least is a growth that is no leak, however few the calls. above is the growth for each call that is one.
	least int
	above float64
	read  func(pid int) (int, error)
}

// judge compares the growth in two halves of many calls, after calls that fill caches. What grows by the calls grows in both.
func (r resource) judge(ctx context.Context, p *Plugin) error {
	pid := need(p.PID(ctx))
	total := call(ctx, p, r.callers, r.calls/5, p.timing.Load/10)
	var grown, made [2]int
	from := need(r.read(pid))
	for half := range grown {
		made[half] = call(ctx, p, r.callers, r.calls*2/5, p.timing.Load/5)
		to := need(r.read(pid))
		grown[half], from, total = to-from, to, total+made[half]
	}
	p.Measure("%d calls; growth %d and %d %s in %d and %d of them", total, grown[0], grown[1], r.what, made[0], made[1])
	for half := range grown {
		if grown[half] < max(r.least, int(r.above*float64(made[half]))) {
			return nil
		}
	}
	return found(fmt.Sprintf("%d and then %d calls of all methods, after %d", made[0], made[1], total-made[0]-made[1]),
		fmt.Sprintf("%d and then %d more %s", grown[0], grown[1], r.what), "no growth for each call")
}

// call makes n calls in the time that it has, and returns how many it made. One of the callers encrypts and decrypts, the others poll Status.
func call(ctx context.Context, p *Plugin, callers, n int, within time.Duration) int {
	trip := roundTrips(p, 1)[0]
	ctx, cancel := context.WithTimeout(ctx, within+p.timing.Call)
	defer cancel()
	began := time.Now()
	var made atomic.Int64
	more := func() bool { return made.Load() < int64(n) && time.Since(began) < within && ctx.Err() == nil }
	together(callers, func(caller int) {
		for more() {
			if caller == 0 {
				_, _ = trip.run(ctx, p.Client())
				made.Add(2)
				continue
			}
			_, _ = p.Client().Status(ctx, &kmsapi.StatusRequest{})
			made.Add(1)
		}
	})
	return int(made.Load())
}

func countDescriptors(pid int) (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0, fmt.Errorf("count the descriptors of the plugin: %w", err)
	}
	return len(entries), nil
}

// fromStatus reads a number of /proc/PID/status.
func fromStatus(name string) func(pid int) (int, error) {
	return func(pid int) (int, error) {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, fmt.Errorf("read the state of the plugin's process: %w", err)
		}
		for line := range strings.Lines(string(data)) {
			if value, ok := strings.CutPrefix(line, name+":"); ok {
				n, err := strconv.Atoi(strings.Fields(value + " 0")[0])
				if err != nil {
					return 0, fmt.Errorf("%s of the plugin's process: %w", name, err)
				}
				return n, nil
			}
		}
		return 0, fmt.Errorf("the state of the plugin's process has no %s", name)
	}
}
