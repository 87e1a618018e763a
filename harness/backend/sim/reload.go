package sim

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/operator/encryption"
)

// What a real API server waits before it tries a file again that it could not take: twice as long each time.
const leastReloadRetry, mostReloadRetry = 5 * time.Millisecond, 1000 * time.Second

// configure writes the file; it is in force some time later.
func (e *envelope) configure(c encryption.List) {
	e.wanted = c
	e.pollAgain()
}

// current says whether the file is in force.
func (e *envelope) current() bool { return e.loaded != nil && slices.Equal(e.loaded.config, e.wanted) }

// poll compares the file with what is in force.
func (e *envelope) poll() {
	e.reads = false
	e.reload()
	e.pollAgain()
}

// pollAgain lets a look follow when it is time for one. An API server looks time and again; looks that would find nothing new are left
// out.
func (e *envelope) pollAgain() {
	if e.loaded == nil || e.reads || e.loading || e.current() {
		return
	}
	e.reads = true
	now, poll := e.s.w.k.Now(), e.s.w.kms2.filePoll
	e.s.at(e.primed.Add((now.Sub(e.primed)/poll+1)*poll), e.poll)
}

// reload takes the file over when every provider in it works. One that does not keeps the old configuration in force, and nobody
// is told but the log.
func (e *envelope) reload() {
	if e.loading || e.current() {
		return
	}
	e.loading = true
	began := e.s.w.k.Now()
	var l *loaded
	l = e.load(e.wanted, e.s.bind(func() {
		e.s.after(0, func() { e.validate(l, began.Add(e.grace(l))) }) // the last provider may answer while load runs
	}))
}

// grace is how long new providers get to become healthy, and old ones to answer what was asked of them.
func (e *envelope) grace(l *loaded) time.Duration {
	if l == nil {
		return e.s.w.kms2.leastGrace
	}
	return max(e.s.w.kms2.leastGrace, l.closeAfter(e.s.w.kms2))
}

// closeAfter is twice what all providers may take for a call.
func (l *loaded) closeAfter(t kmsTimes) time.Duration {
	return 2 * time.Duration(len(l.config.KeyIDs(encryption.KMS))) * t.call
}

func (e *envelope) validate(l *loaded, until time.Time) {
	l.check(func(err error) {
		switch now := e.s.w.k.Now(); {
		case err == nil:
			e.take(l)
		case now.Before(until):
			e.s.after(e.s.w.kms2.gracePoll, func() { e.validate(l, until) })
		default:
			e.reject(l)
		}
	})
}

// take puts a configuration in force; the one before goes on for what is under way.
func (e *envelope) take(l *loaded) {
	old := e.loaded
	e.loaded, e.loading, e.failed = l, false, 0
	e.s.after(old.closeAfter(e.s.w.kms2), old.close)
	e.pollAgain()
}

func (e *envelope) reject(l *loaded) {
	l.close()
	e.loading = false
	e.s.after(min(leastReloadRetry<<min(e.failed, 20), mostReloadRetry), e.reload)
	e.failed++
	e.pollAgain()
}
