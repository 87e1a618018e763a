package starvation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// queue knows for how long a process was delayed because its threads waited for a processor while they could have run. The zero value begins with the
// first reading.
type queue struct{ threads map[string]usage }

// usage of processors by a thread since it began.
type usage struct{ ran, waited time.Duration }

// read returns for how long a process was delayed in the period since the last reading; a thread that is new counts since it began. It is 0 at the
// first reading, and for a process that is gone. It is an error if the system does not count.
func (q *queue) read(pid int, period time.Duration) (delayed time.Duration, err error) {
	tasks := filepath.Join("/proc", strconv.Itoa(pid), "task")
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return 0, gone(err)
	}
	var all usage
	now := make(map[string]usage, len(threads))
	for _, t := range threads {
		text, err := os.ReadFile(filepath.Join(tasks, t.Name(), "schedstat"))
		if err != nil {
			if err := gone(err); err != nil {
				return 0, err
			}
			continue
		}
		u, err := parseUsage(text)
		if err != nil {
			return 0, fmt.Errorf("process %d: %w", pid, err)
		}
		now[t.Name()] = u
		if q.threads != nil {
			before := q.threads[t.Name()]
			all.ran += u.ran - before.ran
			all.waited += u.waited - before.waited
		}
	}
	q.threads = now
	return all.delay(period), nil
}

// delay is by how much a process was late in a period, which its threads spent so. Threads of a Go program take turns: what one of them waits, the work
// that it carries waits. So the waits of all count together, as long as they fit into the period beside what ran. Where they do not fit, threads
// waited at the same time, and the process was delayed by the share of its waits in what it could have run.
func (u usage) delay(period time.Duration) time.Duration {
	runnable := u.ran + u.waited
	if runnable <= period {
		return u.waited
	}
	return time.Duration(float64(period) * (float64(u.waited) / float64(runnable)))
}

// gone forgives that a process or thread has ended.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// parseUsage reads the first two numbers of a schedstat: nanoseconds on a processor, and on a queue for one.
func parseUsage(text []byte) (u usage, err error) {
	if _, err := fmt.Sscan(string(text), &u.ran, &u.waited); err != nil {
		return u, fmt.Errorf("schedstat %q: expected nanoseconds in the first and second place: %w", text, err)
	}
	return u, nil
}
