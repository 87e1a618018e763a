package facts

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Link is a new state of a network link, from At until the next one of the same link.
type Link struct {
	*history.Link
	At, Until time.Time
}

func (l Link) OK() bool { return l.State == history.LinkOK }

// on reports whether it is the link of a node, or of all.
func (l Link) on(node string) bool { return l.Node == node || l.Node == "" }

// When is its span. A link's own From is where it begins.
func (l Link) When() span.Span { return span.New(l.At, l.Until) }

// same reports whether another state is one of the same link.
func (l Link) same(o Link) bool { return l.From == o.From && l.To == o.To && l.Node == o.Node }

// Network tells when links were impaired.
type Network struct {
	Links  []Link
	period span.Span
	bounds Bounds
}

func newNetwork(log *Log, bounds Bounds) *Network {
	n := &Network{period: log.Period, bounds: bounds}
	for e := range log.Each(history.KindLink) {
		n.Links = append(n.Links, Link{Link: e.Link, At: e.At})
	}
	for i := range n.Links {
		n.Links[i].Until = until(n.Links[i+1:], n.Links[i].same, log.Period.To)
	}
	return n
}

// Fine returns the spans in which no link that match picks was cut, reset, slow or mute. The ends of a link are in the
// order of the dial: a reporter opens "reporter to apiserver".
func (n *Network) Fine(match func(Link) bool) span.Set {
	return n.FineBut(match, func(Link) bool { return false })
}

func (n *Network) FineFrom(role string) span.Set {
	return n.Fine(func(l Link) bool { return l.From == role })
}

// fineOn is Fine of the links of a node that begin at a role, and of those that all nodes share.
func (n *Network) fineOn(node, role string) span.Set {
	return n.Fine(func(l Link) bool { return l.From == role && l.on(node) })
}

// FineBut is Fine, except that it ignores slow links that are tolerable. A fault of no length, such as a reset, still
// breaks the request that was under way, so each lasts a nanosecond at least.
func (n *Network) FineBut(match, tolerable func(Link) bool) span.Set {
	matched := slices.DeleteFunc(slices.Clone(n.Links), func(l Link) bool { return !match(l) })
	var bad []span.Span
	for i, l := range matched {
		if !l.OK() && !(l.State == history.LinkSlow && tolerable(l)) {
			over := until(matched[i+1:], l.same, n.period.To)
			bad = append(bad, span.New(l.At, span.Latest(over, l.At.Add(1)))) // what was under way is lost, however short it was
		}
	}
	return span.Merge(bad).Complement(n.period)
}

// crossings is how often a link is crossed between a change and the answer of the aggregator to it, at most. The news comes to the
// aggregator (1). A step that is under way reads, writes the rollups, removes, and writes the union (8). The next step
// reads (2), and its write arrives (1). With a delay of d that takes up to 12 d, which must fit into A.
const crossings = 12

// Prompt returns the spans in which no link that begins at one of from was so slow that the delay alone may use up the
// aggregator's bound. A client leaves an API server that is gone, and the history tells when. It has no reason to leave
// one that is only slow, and the history does not tell whether the aggregator uses that one.
func (n *Network) Prompt(from ...string) span.Set {
	return n.Fine(func(l Link) bool { return (l.OK() || n.delays(l)) && slices.Contains(from, l.From) })
}

// delays reports whether a link may use up the aggregator's bound, and still carries what is sent.
func (n *Network) delays(l Link) bool {
	slow := l.State == history.LinkSlow && (l.Delay == 0 || crossings*l.Delay > n.bounds.AggregatorLatency)
	return slow || slices.Contains([]string{history.LinkThrottled, history.LinkLossy, history.LinkSlowHandshake}, l.State) // for how long is not known
}

// writeCrossings is how often a link is crossed by a write, at most: one round trip each for the handshake, a request
// that reads, and the write.
const writeCrossings = 6

// inTime reports whether a write over a slow link is done within its deadline.
func (n *Network) inTime(l Link) bool {
	return l.Delay > 0 && writeCrossings*l.Delay < n.bounds.WriteTimeout
}
