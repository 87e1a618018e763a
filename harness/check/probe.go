package check

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// answers is the set of outcomes that a reporter may truthfully report for one call.
type answers uint8

const (
	mayHealthy answers = 1 << iota
	mayUnhealthy
	mayError
)

func (a answers) allow(s contract.Status) bool {
	switch s {
	case contract.StatusHealthy:
		return a&mayHealthy != 0
	case contract.StatusUnhealthy:
		return a&mayUnhealthy != 0
	default:
		return a&mayError != 0
	}
}

// probe is one Status call of a plugin's journal. Whoever made it, it says what a reporter's probe would have met.
type probe struct {
	*history.Call
	seq     int64
	answers answers
	// bySource is what the sources allow beyond that, where it is a house rule that narrows it to answers.
	bySource answers
	// surely is false where the call does not tell how the plugin was: the caller left early, or the sources leave it open.
	surely bool
}

func (p probe) good() bool { return p.surely && p.answers == mayHealthy }
func (p probe) bad() bool  { return p.surely && p.answers&mayHealthy == 0 }

// readProbe applies the contract's table "Outcome of a probe" to what left the plugin.
func readProbe(c *history.Call, seq int64, timeout, tolerance time.Duration) probe {
	p := probe{Call: c, seq: seq, surely: true}
	took := c.Ended.Sub(c.Began)
	// The reporter's deadline also covers dialling, so it may end a little before the plugin counts it.
	margin := min(tolerance, timeout/4)
	switch {
	case c.Outcome == history.CallAbandoned:
		p.answers, p.surely = mayError, took >= timeout-margin
	case c.Outcome != history.CallOK:
		p.answers = mayError
	case took > timeout+margin:
		p.answers = mayError
	default:
		p.answers = answered(c)
		if c.Healthz == "ok" && p.answers == mayUnhealthy {
			p.bySource = mayHealthy
		}
		if took > timeout-margin || undeliverable(c) {
			p.answers |= mayError
		}
	}
	return p
}

func answered(c *history.Call) answers {
	switch {
	case c.Healthz == "" && c.KEKID == "" && c.Version == "":
		return mayUnhealthy | mayError // an empty response, or none
	case c.Healthz != "ok" || c.Version != "v2" && c.Version != "v2beta1":
		return mayUnhealthy
	case c.KEKID == "" || kekBytes(c) > contract.MaxKEKIDBytes:
		return mayUnhealthy
	case len(c.KEKID) >= contract.MaxKEKIDBytes-utf8.UTFMax && c.KEKIDBytes == 0:
		return mayHealthy | mayUnhealthy // perhaps cut by the journal
	}
	return mayHealthy
}

func kekBytes(c *history.Call) int { return max(len(c.KEKID), c.KEKIDBytes) }

// undeliverable: a protobuf string that is not valid UTF-8 fails at the receiver; the journal shows U+FFFD for it.
func undeliverable(c *history.Call) bool {
	return strings.ContainsRune(c.Healthz+c.KEKID+c.Version, utf8.RuneError)
}
