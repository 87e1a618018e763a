package facts

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Answers is the set of outcomes that a reporter may truthfully report for one call. It is a set because the two ends of
// a call can differ: a plugin that answered just at the deadline does not know whether its caller was still there.
type Answers uint8

const (
	MayHealthy Answers = 1 << iota
	MayUnhealthy
	MayError
)

// Allow reports whether a reporter may report a status; any other than healthy and unhealthy is an error.
func (a Answers) Allow(s contract.Status) bool {
	switch s {
	case contract.StatusHealthy:
		return a&MayHealthy != 0
	case contract.StatusUnhealthy:
		return a&MayUnhealthy != 0
	default:
		return a&MayError != 0
	}
}

// Probe is one Status call of a plugin's journal. It shows what a reporter's probe would have met, whichever client made it.
type Probe struct {
	*history.Call
	span.Span // of the call
	Seq       int64
	Answers   Answers
	// BySource is what the sources allow beyond that, where it is a house rule that narrows it to Answers.
	BySource Answers
	// surely is false where the call does not tell how the plugin was: the caller left early, or the sources leave it open.
	surely bool
}

func (p Probe) good() bool { return p.surely && p.Answers == MayHealthy }
func (p Probe) bad() bool  { return p.surely && p.Answers&MayHealthy == 0 }

// tells reports whether the call tells how the plugin was.
func (p Probe) tells() bool { return p.good() || p.bad() }

// readProbe applies the contract's table "Outcome of a probe" to what left the plugin.
func readProbe(c *history.Call, seq int64, timeout, tolerance time.Duration) Probe {
	p := Probe{Call: c, Span: span.New(c.Began, c.Ended), Seq: seq, surely: true}
	took := p.Length()
	// The reporter's deadline also covers dialling, so it may end a little before the plugin counts it, and a starved
	// reporter may read an answer late. Within the margin both outcomes are true. A quarter of the deadline bounds it,
	// so that a large tolerance does not excuse every answer.
	margin := min(tolerance, timeout/4)
	switch {
	case c.Outcome == history.CallAbandoned:
		p.Answers, p.surely = MayError, took >= timeout-margin
	case c.Outcome != history.CallOK:
		p.Answers = MayError
	case took > timeout+margin:
		p.Answers = MayError
	default:
		p.Answers = answered(c)
		if c.Healthz == "ok" && p.Answers == MayUnhealthy {
			p.BySource = MayHealthy
		}
		if took > timeout-margin || undeliverable(c) {
			p.Answers |= MayError
		}
	}
	return p
}

// answered applies the rows of the table to an answer that arrived in time. kube-apiserver itself refuses an empty
// key_id and one over 1024 bytes (k8s.io/apiserver, envelope/kmsv2), and accepts v2 and v2beta1 as versions.
func answered(c *history.Call) Answers {
	switch {
	case c.Healthz == "" && c.KEKID == "" && c.Version == "":
		return MayUnhealthy | MayError // an empty response, or none
	case c.Healthz != "ok" || c.Version != "v2" && c.Version != "v2beta1":
		return MayUnhealthy
	case c.KEKID == "" || KEKBytes(c) > contract.MaxKEKIDBytes:
		return MayUnhealthy
	case len(c.KEKID) >= contract.MaxKEKIDBytes-utf8.UTFMax && c.KEKIDBytes == 0:
		return MayHealthy | MayUnhealthy // perhaps cut by the journal
	}
	return MayHealthy
}

// KEKBytes is the size of the key_id as sent.
func KEKBytes(c *history.Call) int { return max(len(c.KEKID), c.KEKIDBytes) }

// undeliverable: a protobuf string that is not valid UTF-8 fails at the receiver; the journal shows U+FFFD for it.
// gRPC's Go codec refuses to unmarshal such a string, and the caller sees codes.Internal.
func undeliverable(c *history.Call) bool {
	return strings.ContainsRune(c.Healthz+c.KEKID+c.Version, utf8.RuneError)
}
