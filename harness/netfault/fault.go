package netfault

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

type Mode string

const (
	// OK passes everything on.
	OK Mode = "ok"
	// Cut loses every packet: existing connections fall silent, new ones are accepted by the kernel and then silent. What
	// was sent meanwhile arrives after the link is healed, as TCP's retransmission would have it. Behind a load balancer
	// dialling a cut member takes the whole dial timeout, then another member is tried. With a Direction only that is lost:
	// the other still carries the bytes of existing connections, and no new one is established, since a handshake needs both.
	Cut Mode = "cut"
	// Reset ends existing connections with RST, and new ones at once.
	Reset Mode = "reset"
	// Slow delays every byte by Delay, in each direction.
	Slow Mode = "slow"
	// Mute accepts new connections, reads what they say and never answers, like a server that has opened its port but does
	// not serve yet; when the mode ends, they are reset, for what they said is lost. Existing connections are silent as in
	// mode Cut, and go on afterwards. A load balancer without health checks takes a mute member for alive.
	Mute Mode = "mute"
	// Throttled carries Rate bytes a second in each direction. All connections share them.
	Throttled Mode = "throttled"
	// Lossy loses Loss percent of the segments, which a sender repeats as Linux does: after 200 ms, or after 1 s while a
	// connection is established, and after twice as long each further time. Later bytes wait for earlier ones. Fast
	// retransmission is left out: it needs three later segments in flight, which a small request does not have.
	Lossy Mode = "lossy"
	// SlowHandshake lets the upstream's first bytes on a new connection trickle, so that the last of them passes when the
	// connection is Delay old. A TLS handshake takes at least as long. Later bytes and existing connections are not delayed.
	SlowHandshake Mode = "slow-handshake"
)

// modes are all of them, with what each needs.
func modes() map[Mode]need {
	return map[Mode]need{OK: {}, Cut: {direction: true}, Reset: {}, Mute: {}, Slow: {delay: true}, SlowHandshake: {delay: true}, Throttled: {rate: true}, Lossy: {loss: true}}
}

// need is which parameters a mode requires, except for a direction, which it allows.
type need struct{ delay, rate, loss, direction bool }

// Direction of bytes on a link.
type Direction string

const (
	Requests Direction = "requests" // from the client to the upstream
	Answers  Direction = "answers"  // back
)

// Fault is a mode with its parameters. The zero value is OK.
type Fault struct {
	Mode Mode `json:"mode"`
	// Delay of each direction in mode Slow, of a handshake in mode SlowHandshake: more than 0, at most MaxDelay.
	Delay time.Duration `json:"delay,omitempty"`
	// Direction is what mode Cut loses; empty: both.
	Direction Direction `json:"direction,omitempty"`
	// Rate of mode Throttled, in bytes a second: at least 1.
	Rate int `json:"rate,omitempty"`
	// Loss of mode Lossy, in percent: 1 to 99.
	Loss int `json:"loss,omitempty"`
}

// MaxDelay bounds Fault.Delay; with more, use Cut.
const MaxDelay = time.Minute

// Validate says what is wrong with a fault.
func (f Fault) Validate() error {
	need, known := modes()[cmp.Or(f.Mode, OK)]
	switch {
	case !known:
		return fmt.Errorf("network fault %q is unknown: expected one of %s", f.Mode, modeNames())
	case !need.delay && f.Delay != 0:
		return fmt.Errorf("network fault %q: a delay of %v makes sense with %q and %q only", f.Mode, f.Delay, Slow, SlowHandshake)
	case need.delay && (f.Delay <= 0 || f.Delay > MaxDelay):
		return fmt.Errorf("network fault %q: the delay is %v, expected more than 0 and at most %v", f.Mode, f.Delay, MaxDelay)
	case !need.rate && f.Rate != 0:
		return fmt.Errorf("network fault %q: a rate makes sense with %q only", f.Mode, Throttled)
	case need.rate && f.Rate <= 0:
		return fmt.Errorf("network fault %q: the rate is %d, expected at least 1 byte a second", f.Mode, f.Rate)
	case !need.loss && f.Loss != 0:
		return fmt.Errorf("network fault %q: a loss makes sense with %q only", f.Mode, Lossy)
	case need.loss && (f.Loss < 1 || f.Loss > 99):
		return fmt.Errorf("network fault %q: the loss is %d, expected 1 to 99 percent", f.Mode, f.Loss)
	case f.Direction != "" && !need.direction:
		return fmt.Errorf("network fault %q: a direction makes sense with %q only", f.Mode, Cut)
	case f.Direction != "" && f.Direction != Requests && f.Direction != Answers:
		return fmt.Errorf("network fault %q: the direction is %q, expected %q or %q", f.Mode, f.Direction, Requests, Answers)
	}
	return nil
}

// modeNames names all modes, for messages.
func modeNames() string {
	var names []string
	for _, m := range slices.Sorted(maps.Keys(modes())) {
		names = append(names, string(m))
	}
	return strings.Join(names, ", ")
}

// Breaks says whether there is a fault at all.
func (f Fault) Breaks() bool { return f.Mode != OK && f.Mode != "" }

// silent reports whether the bytes of existing connections in a direction wait.
func (f Fault) silent(d Direction) bool {
	return f.Mode == Mute || f.Mode == Cut && (f.Direction == "" || f.Direction == d)
}

// Whether a fault leaves a new connection unheard, lets one exist, and lets one exist without an answer.
func (f Fault) unheard() bool { return f.Mode == Cut }
func (f Fault) admits() bool  { return f.Mode != Reset }
func (f Fault) mutes() bool   { return f.Mode == Mute }
