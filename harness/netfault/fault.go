package netfault

import (
	"fmt"
	"time"
)

// Mode is what happens to connections.
type Mode string

const (
	// OK passes everything on.
	OK Mode = "ok"
	// Cut loses every packet: existing connections fall silent, new ones are accepted by the kernel and then silent. What
	// was sent meanwhile arrives after the link is healed, as TCP's retransmission would have it. Behind a load balancer
	// dialling a cut member takes the whole dial timeout, then another member is tried.
	Cut Mode = "cut"
	// Reset ends existing connections with RST, and new ones at once.
	Reset Mode = "reset"
	// Slow delays every byte by Delay, in each direction.
	Slow Mode = "slow"
	// Mute accepts new connections, reads what they say and never answers, like a server that has opened its port but does
	// not serve yet; when the mode ends, they are reset, for what they said is lost. Existing connections are silent as in
	// mode Cut, and go on afterwards. A load balancer without health checks takes a mute member for alive.
	Mute Mode = "mute"
)

// Fault is a mode with its parameter. The zero value is OK.
type Fault struct {
	Mode Mode
	// Delay of each direction in mode Slow: more than 0, at most MaxDelay.
	Delay time.Duration
}

// MaxDelay bounds Fault.Delay; with more, use Cut.
const MaxDelay = time.Minute

// Validate says what is wrong with a fault.
func (f Fault) Validate() error {
	switch f.Mode {
	case OK, Cut, Reset, Mute, "":
		if f.Delay != 0 {
			return fmt.Errorf("network fault %q: a delay of %v makes sense with %q only", f.Mode, f.Delay, Slow)
		}
		return nil
	case Slow:
		if f.Delay <= 0 || f.Delay > MaxDelay {
			return fmt.Errorf("network fault %q: the delay is %v, expected more than 0 and at most %v", f.Mode, f.Delay, MaxDelay)
		}
		return nil
	}
	return fmt.Errorf("network fault %q is unknown: expected one of %q, %q, %q, %q, %q", f.Mode, OK, Cut, Reset, Slow, Mute)
}

// Breaks says whether there is a fault at all.
func (f Fault) Breaks() bool { return f.Mode != OK && f.Mode != "" }

// silent says whether the bytes of existing connections wait.
func (f Fault) silent() bool { return f.Mode == Cut || f.Mode == Mute }

// Whether a fault leaves a new connection unheard, lets one exist, and lets one exist without an answer.
func (f Fault) unheard() bool { return f.Mode == Cut }
func (f Fault) admits() bool  { return f.Mode != Reset }
func (f Fault) mutes() bool   { return f.Mode == Mute }
