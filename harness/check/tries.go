package check

import (
	"slices"

	"github.com/kmsharness/kmsharness/harness/history"
)

// judgeTries: who is refused does not try more often than others write.
func judgeTries(v *Facts, f *Finding, node string) {
	tries := v.requests.refusedTries(node)
	if len(tries) == 0 {
		return
	}
	// What an API server or a way held back comes all at once.
	lives := v.able.reaching(node).settled(v.run.Timing.WriteTimeout + v.tolerance())
	for _, life := range v.processes.runsOf(node) {
		judgeFast(v, f, node, tries, "tries to write", houseTries, lives.clip(life))
	}
}

// refusedTries are the writes of node's reporter that were refused.
func (rq *requestFacts) refusedTries(node string) (out []write) {
	if len(rq.facts.network.refusals) == 0 {
		return nil
	}
	for _, n := range rq.requestsOf[node] {
		if r := &rq.all[n]; r.write && r.onCR && rq.wasRefused(r, history.RoleReporter) {
			out = append(out, write{from: r.received, to: r.at, seq: r.seq})
		}
	}
	slices.SortStableFunc(out, func(a, b write) int { return a.from.Compare(b.from) })
	return out
}

// wasRefused says whether a refusal of a role's requests was in force that answers as a request was answered.
func (rq *requestFacts) wasRefused(r *request, role string) bool {
	return slices.ContainsFunc(rq.facts.network.refusals, func(x refusal) bool {
		return x.of(role) && x.Code == r.Code && (x.has(r.at) || x.has(r.received) || x.to.Equal(r.at))
	})
}
