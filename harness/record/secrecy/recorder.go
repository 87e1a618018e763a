package secrecy

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
)

// maxFinds of one log are recorded; a plugin that prints every key would fill the history.
const maxFinds = 20

// Recorder searches the lines of several logs. It is safe for concurrent use.
type Recorder struct {
	Sink record.Sink
	Now  func() time.Time

	mu    sync.Mutex
	guard *Guard
	logs  map[string]*count
}

type count struct{ lines, values, finds int }

// Add lets it search for a value from now on. Do so before the value is sent anywhere.
func (r *Recorder) Add(object, what string, value []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.guard == nil {
		r.guard = NewGuard()
	}
	r.guard.Add(object, what, value)
}

// Line searches one line of a log, such as "log/cp-1". As long as there is nothing to search for it costs nothing.
func (r *Recorder) Line(log string, line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.guard == nil {
		return
	}
	if r.logs == nil {
		r.logs = map[string]*count{}
	}
	c := r.logs[log]
	if c == nil {
		c = &count{}
		r.logs[log] = c
	}
	c.lines, c.values = c.lines+1, r.guard.Values()
	find, found := r.guard.Search(line)
	if !found {
		return
	}
	if c.finds++; c.finds <= maxFinds {
		r.Sink.Record(r.Now(), "secrecy", &history.Secrecy{Log: log, Lines: c.lines, Values: c.values, Object: find.Object, What: find.What, Form: find.Form})
	}
}

// Close records how much of each log was searched, which is what makes "nothing found" say something.
func (r *Recorder) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, log := range slices.Sorted(maps.Keys(r.logs)) {
		c := r.logs[log]
		r.Sink.Record(r.Now(), "secrecy", &history.Secrecy{Log: log, Lines: c.lines, Values: c.values})
	}
	r.logs = nil
}
