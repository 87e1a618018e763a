package history

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"
	"time"
)

// Log appends events to a writer and keeps them in memory for the engine's state view and the checker. It is safe
// for concurrent use. The zero value is not usable; see NewLog.
type Log struct {
	mu     sync.Mutex
	w      *bufio.Writer
	events []Event
	seq    int64
	err    error // the first write error: reported by Close, the run goes on in memory
	subs   []*func(Event)
}

// leastCapacity is for how many events a log makes room at first.
const leastCapacity = 64

// NewLog writes to w; nil keeps the history in memory only.
func NewLog(w io.Writer) *Log {
	l := &Log{}
	if w != nil {
		l.w = bufio.NewWriterSize(w, 64<<10)
	}
	return l
}

// NewLogIn is NewLog that keeps events in a room that an earlier log had, of which nobody reads any more: histories that follow one
// another need not each find theirs. See Room.
func NewLogIn(w io.Writer, room []Event) *Log {
	l := NewLog(w)
	l.events = room[:0]
	return l
}

// Buffer is what NewLogIn takes, once the events that are in it are needed no more.
func (l *Log) Buffer() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.events)
	room := l.events[:0]
	l.events = nil
	return room
}

// Append numbers, stores and writes e, then tells the subscribers, in the same order for all of them.
func (l *Log) Append(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	e.Seq, e.At = l.seq, e.At.UTC()
	if len(l.events) == cap(l.events) {
		l.events = slices.Grow(l.events, max(len(l.events), leastCapacity)) // twice: append would copy a long history ten times
	}
	l.events = append(l.events, e)
	l.write(&l.events[len(l.events)-1]) // and not &e, which would have every event allocated once more
	for _, f := range l.subs {
		(*f)(e)
	}
}

// Subscribe calls f for every event so far and then for each new one, until cancel is called. f runs under the log's
// lock: it must return at once and must not call the log.
func (l *Log) Subscribe(f func(Event)) (cancel func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		f(e)
	}
	l.subs = append(l.subs, &f)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.subs = slices.DeleteFunc(l.subs, func(other *func(Event)) bool { return other == &f })
	}
}

// Events is everything so far, in the order of recording. It is not to be changed: the log goes on behind it, and others read it.
func (l *Log) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events[:len(l.events):len(l.events)]
}

// Flush writes what is buffered; after a crash of the harness a history is complete up to the last flush.
func (l *Log) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w != nil && l.err == nil {
		l.err = l.w.Flush()
	}
	return l.err
}

func (l *Log) write(e *Event) {
	if l.w == nil || l.err != nil {
		return
	}
	line, err := json.Marshal(e)
	if err != nil {
		l.err = fmt.Errorf("encode history event %d: %w", e.Seq, err)
		return
	}
	if _, err := l.w.Write(append(line, '\n')); err != nil {
		l.err = fmt.Errorf("write history: %w", err)
	}
	if e.Kind == KindPhase || e.Kind == KindExpectation || e.Kind == KindEnd {
		l.err = cmp.Or(l.err, l.w.Flush())
	}
}

// Record is Append for a payload: the kind follows from its type.
func (l *Log) Record(at time.Time, source string, payload any) {
	e := Event{At: at, Source: source}
	if of, ok := payload.(Of); ok {
		e.APIServer, payload = of.APIServer, of.Payload
	}
	var ok bool
	if e.Kind, ok = kindOf[reflect.TypeOf(payload)]; !ok { // a programming error of a recorder must not vanish, nor bring the run down
		e.Kind, payload = KindEnd, &End{Problem: fmt.Sprintf("recorder %s passed a %T", source, payload)}
	}
	e.payload(e.Kind).Set(reflect.ValueOf(payload))
	l.Append(e)
}
