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
	// NotReady accepts connections as far as TCP goes and then stays silent, like an API server that has opened its port
	// but does not serve yet. A load balancer without health checks takes it for alive. Otherwise like Cut.
	NotReady Mode = "not-ready"
)

// Fault is a mode with its parameter. The zero value is OK.
type Fault struct {
	Mode Mode
	// Delay of each direction in mode Slow: more than 0, at most MaxDelay.
	Delay time.Duration
}

// MaxDelay bounds Fault.Delay; with more, use Cut.
const MaxDelay = time.Minute

func (f Fault) validate() error {
	switch f.Mode {
	case OK, Cut, Reset, NotReady, "":
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
	return fmt.Errorf("network fault %q is unknown: expected one of %q, %q, %q, %q, %q", f.Mode, OK, Cut, Reset, Slow, NotReady)
}

// silent says whether bytes wait.
func (f Fault) silent() bool { return f.Mode == Cut || f.Mode == NotReady }
