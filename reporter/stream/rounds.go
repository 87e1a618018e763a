package stream

import "time"

// Bounds of the wait after every replica of the aggregator was tried in vain. It doubles from one to the other. The wait adds to the time after which
// a report arrives that its reporter sends again, so it is far below an interval.
const (
	RetryMin = 50 * time.Millisecond
	RetryMax = 800 * time.Millisecond
)

// Rounds goes round the replicas of the aggregator, as a headless service lists them. The zero value begins with the first one.
type Rounds struct {
	next  int
	tried int // since a stream stood
	wait  time.Duration
}

// Next is the index of the replica to try, of as many as there are; -1 if there are none.
func (r *Rounds) Next(replicas int) int {
	if replicas == 0 {
		return -1
	}
	r.next %= replicas
	return r.next
}

// Failed notes that a replica could not be reached or refused the stream, of as many as there are, and returns how long to wait before the next one is tried:
// not at all until each was tried.
func (r *Rounds) Failed(replicas int) time.Duration {
	r.next++
	if r.tried++; r.tried < replicas {
		return 0
	}
	r.tried = 0
	r.wait = min(max(2*r.wait, RetryMin), RetryMax)
	return r.wait
}

// Stood notes that a stream stood.
func (r *Rounds) Stood() { r.tried, r.wait = 0, 0 }
