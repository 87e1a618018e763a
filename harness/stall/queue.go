package stall

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// Look is the period in which the queues are read: often enough to say when a thread waited, and seldom enough to cost less than a
	// hundredth of a processor for a control plane of three nodes.
	Look = 500 * time.Millisecond
	// Waited is how long a thread must wait in that time to count. A request passes through four processes, one after another: four times less
	// than that fits in the smallest tolerance of a backend (500 ms).
	Waited = 100 * time.Millisecond
)

// Queue knows how long the threads of a process have waited for a processor while they could have run, which Linux counts. The
// process that runs this may have all the time it wants meanwhile: what it looks at may have a lower priority. The zero value
// begins with the first look.
type Queue struct{ waited map[string]time.Duration }

// NewQueue is for a process that was started a moment ago: its first look counts from the start.
func NewQueue() *Queue { return &Queue{waited: map[string]time.Duration{}} }

// Look is the longest that one thread of a process waited since the last look; a thread that is new waited since it began. It is 0 at the
// first look of the zero value, and for a process that is gone. It is an error if the system does not count.
func (q *Queue) Look(pid int) (longest time.Duration, err error) {
	tasks := filepath.Join("/proc", strconv.Itoa(pid), "task")
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return 0, gone(err)
	}
	now := make(map[string]time.Duration, len(threads))
	for _, t := range threads {
		text, err := os.ReadFile(filepath.Join(tasks, t.Name(), "schedstat"))
		if err != nil {
			if err := gone(err); err != nil {
				return 0, err
			}
			continue
		}
		waited, err := parseWaited(text)
		if err != nil {
			return 0, fmt.Errorf("process %d: %w", pid, err)
		}
		now[t.Name()] = waited
		if q.waited != nil {
			longest = max(longest, waited-q.waited[t.Name()])
		}
	}
	q.waited = now
	return longest, nil
}

// gone forgives that a process or thread has ended.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// parseWaited reads the second number of a schedstat: nanoseconds on a queue.
func parseWaited(text []byte) (time.Duration, error) {
	numbers := bytes.Fields(text)
	if len(numbers) != 3 {
		return 0, fmt.Errorf("schedstat %q: expected three numbers", text)
	}
	ns, err := strconv.ParseInt(string(numbers[1]), 10, 64)
	if err != nil || ns < 0 {
		return 0, fmt.Errorf("schedstat %q: expected nanoseconds in the second place", text)
	}
	return time.Duration(ns), nil
}
