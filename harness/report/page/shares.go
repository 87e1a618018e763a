package page

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// share is one API server's part of a history: kube-apiserver's, with what all share, or a further one's own.
type share struct {
	name string // empty: kube-apiserver
	run  history.Run
	seen objects
}

// telling is an event as in its owner's own history.
type telling struct {
	event history.Event
	owner *share
}

// sharesOf finds whose each event is, and what it is in its owner's own history. What several look at is kube-apiserver's, and what is
// nobody's is left out.
func sharesOf(events []history.Event) (kept []history.Event, told []telling, all []*share) {
	head := history.Run{}
	for _, e := range events {
		if e.Run != nil {
			head = *e.Run
		}
	}
	names := []string{""} // kube-apiserver first
	for _, f := range head.APIServers {
		names = append(names, f.Name)
	}
	owned := map[int64]telling{}
	for _, name := range names {
		s := &share{name: name, seen: newObjects()}
		all = append(all, s)
		for _, e := range history.About(events, name) {
			if e.Run != nil {
				s.run = *e.Run
			}
			if owned[e.Seq].owner == nil && (name == "" || e.APIServer == "") {
				owned[e.Seq] = telling{e, s}
			}
		}
	}
	for _, e := range events {
		if t, ok := owned[e.Seq]; ok {
			kept, told = append(kept, e), append(told, t)
		}
	}
	return kept, told, all
}

// inShare puts a place into the rows of the API server that the current share is about. Rows of the scenario and the network belong to all.
func (b *builder) inShare(p place) place {
	if p.lane() == laneNode || p.lane() == laneRollups || p.lane() == laneData {
		p.api = b.share.name
	}
	return p
}

// closeShares ends every share: a report that was not renewed had become stale.
func (b *builder) closeShares(until time.Time) {
	for _, s := range b.shares {
		b.share = s
		for _, p := range inOrder(s.seen.fresh) {
			b.staleUntil(p, until)
		}
	}
}
