package netfault

import (
	"math"
	"time"
)

// piece is bytes of a connection that pass together.
type piece struct {
	direction Direction
	opened    time.Time // when the connection was established
	read      time.Time // from the sender; zero: the end of the stream
	bytes     int       // of the piece
	left      int       // bytes that were read with it and have not passed, its own among them
}

const (
	// segmentTimeout and handshakeTimeout are after how long Linux repeats a lost segment at the earliest, and one that establishes a
	// connection.
	segmentTimeout, handshakeTimeout = 200 * time.Millisecond, time.Second
	// segmentSize is the payload of a segment on Ethernet.
	segmentSize = 1460
	// trickles is in how many pieces the bytes of a slow handshake pass, and piecesASecond those of a throttled link.
	trickles, piecesASecond = 16, 10
)

// size is how many of left bytes pass together.
func (f Fault) size(left int) int {
	most := left
	switch f.Mode {
	case Throttled:
		most = f.Rate / piecesASecond
	case Lossy:
		most = segmentSize
	case SlowHandshake:
		most = left / trickles
	}
	return max(1, min(most, left))
}

// delay is how long a piece that is about to pass waits.
func (c *control) delay(f Fault, p piece) time.Duration {
	if p.read.IsZero() {
		return 0
	}
	switch f.Mode {
	case Slow:
		return time.Until(p.read.Add(f.Delay))
	case SlowHandshake:
		end := p.opened.Add(f.Delay)
		if p.direction == Requests || p.read.After(end) || c.outlives(p.opened) {
			return 0
		}
		return time.Duration(float64(time.Until(end)) * float64(p.bytes) / float64(p.left))
	case Throttled:
		return time.Until(c.carried(f, p))
	case Lossy:
		return c.repeated(f, segmentTimeout, 1)
	}
	return 0
}

// outlives reports whether a connection is older than the fault.
func (c *control) outlives(opened time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return opened.Before(c.since)
}

// carried is when a throttled link has carried a piece: after all that was sent before.
func (c *control) carried(f Fault, p piece) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := c.free[p.direction]
	if now := time.Now(); from.Before(now) {
		from = now
	}
	c.free[p.direction] = from.Add(time.Duration(p.bytes) * time.Second / time.Duration(f.Rate))
	return c.free[p.direction]
}

// repeated is how long it takes until as many segments in a row get through a lossy link, if all of them are repeated together.
func (c *control) repeated(f Fault, timeout time.Duration, segments int) (wait time.Duration) {
	if f.Mode != Lossy {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	through := math.Pow(1-float64(f.Loss)/100, float64(segments))
	for ; c.random.Float64() >= through && wait < MaxDelay; timeout *= 2 {
		wait += timeout
	}
	return wait
}
