// Package journal keeps numbered entries, such as the calls of a plugin: bounded in memory, and streamed as JSON lines.
// It defines the form of a call.
package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Entry is something that can be numbered. Numbers begin at 1 and have no gaps, so a reader sees what it missed.
type Entry[T any] interface{ WithSeq(seq uint64) T }

// Log holds the last entries. It is safe for concurrent use.
type Log[T Entry[T]] struct {
	mu       sync.Mutex
	ring     []T // grows until it has capacity entries: most plugins are asked little
	capacity uint64
	last     uint64 // number of the newest entry, 0 before the first
	out      io.Writer
	line     []byte // kept for the next one
	err      error
	news     chan struct{} // closed at the next entry; nil while nobody waits
}

// New keeps the last capacity entries in memory and writes each to out, if out is not nil, as one line in one Write:
// a reader of the file never sees half a line, and a process that is killed loses nothing that it answered.
func New[T Entry[T]](capacity int, out io.Writer) *Log[T] {
	return &Log[T]{capacity: uint64(max(capacity, 1)), out: out}
}

// Append adds an entry.
func (l *Log[T]) Append(entry T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	if uint64(len(l.ring)) < l.capacity {
		l.ring = append(l.ring, entry)
	}
	slot := &l.ring[l.slot(l.last)]
	*slot = entry.WithSeq(l.last)
	if l.out != nil {
		l.write(slot)
	}
	if l.news != nil {
		close(l.news)
		l.news = nil
	}
}

func (l *Log[T]) slot(seq uint64) uint64 { return (seq - 1) % l.capacity }

// write takes a pointer because a copy of the entry would cost an allocation in every call of a plugin.
func (l *Log[T]) write(entry *T) {
	var err error
	if l.line, err = appendLine(l.line[:0], entry); err == nil {
		_, err = l.out.Write(l.line)
	}
	if err != nil && l.err == nil {
		l.err = fmt.Errorf("write journal line %d: %w", l.last, err)
	}
}

func appendLine(b []byte, entry any) ([]byte, error) {
	if e, ok := entry.(interface{ AppendJSON([]byte) []byte }); ok {
		return append(e.AppendJSON(b), '\n'), nil
	}
	line, err := json.Marshal(entry)
	return append(append(b, line...), '\n'), err
}

// Err is the first failure to write a line, if any. The journal in memory goes on regardless.
func (l *Log[T]) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Written says whether entries are written out, and not only kept in memory.
func (l *Log[T]) Written() bool { return l.out != nil }

// Last is the number of the newest entry; 0 if there is none.
func (l *Log[T]) Last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// After returns the entries with a number above seq that are still in memory, oldest first, at most limit, and the
// number to ask with next.
func (l *Log[T]) After(seq uint64, limit int) (entries []T, next uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held := uint64(len(l.ring)); l.last > held {
		seq = max(seq, l.last-held)
	}
	for seq < l.last && len(entries) < limit {
		seq++
		entries = append(entries, l.ring[l.slot(seq)])
	}
	return entries, seq
}

// Wait returns as soon as an entry with a number above seq exists, or with ctx's error.
func (l *Log[T]) Wait(ctx context.Context, seq uint64) error {
	for {
		news := l.waitFor(seq)
		if news == nil {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *Log[T]) waitFor(seq uint64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last > seq {
		return nil
	}
	if l.news == nil {
		l.news = make(chan struct{})
	}
	return l.news
}

// DefaultCapacity is how many entries a log keeps in memory unless told otherwise: an hour of one plugin that is
// probed every second by a reporter and an API server, in a few MiB.
const DefaultCapacity = 10_000
