package check

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// aggregatedFacts are the histories of the aggregated API servers: each is judged by the same invariants, as if it were alone.
func aggregatedFacts(events []history.Event) []*Facts {
	var out []*Facts
	for n := range events {
		if events[n].Kind != history.KindRun {
			continue
		}
		for _, x := range events[n].Run.APIServers {
			v := newFacts(history.About(events, x.Name))
			v.apiServer = x.Name
			out = append(out, v)
		}
		break
	}
	return out
}

// add takes in what was found of a further API server, and says so.
func (f *Finding) add(name string, of Finding) {
	f.Judged, f.Count, f.when = f.Judged+of.Judged, f.Count+of.Count, append(f.when, of.when...)
	for _, x := range of.Violations {
		x.Seen, x.APIServer = name+": "+x.Seen, name
		f.Violations = append(f.Violations, x)
	}
	for _, m := range of.Measures {
		f.Measures = append(f.Measures, Measure{name + ": " + m.Name, m.Value})
	}
}

// latencies are those of all API servers.
func latencies(all []*Facts) (detected, recovered []time.Duration) {
	for _, v := range all {
		_, d := detections(v)
		_, r := recoveries(v)
		detected, recovered = append(detected, d...), append(recovered, r...)
	}
	return detected, recovered
}

// encryptor returns the role of the API server whose encryption configuration a history is about. In the history of an aggregated API server this
// is that server, although its reporters write to a kube-apiserver.
func encryptor(v *Facts) string {
	if len(v.processes.ofRole(history.RoleAggregatedAPIServer)) > 0 {
		return history.RoleAggregatedAPIServer
	}
	return history.RoleAPIServer
}
