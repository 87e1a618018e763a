package check

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// furtherView is the history of a further API server: it is judged by the same invariants, as if it were alone.
type furtherView struct {
	*view
	name string
}

func furtherOf(events []history.Event) []furtherView {
	var out []furtherView
	for n := range events {
		if events[n].Kind != history.KindRun {
			continue
		}
		for _, x := range events[n].Run.APIServers {
			out = append(out, furtherView{newView(history.About(events, x.Name)), x.Name})
		}
		break
	}
	return out
}

// finding is what judging an invariant finds, and which violations CPU starvation explains.
func (v *view) finding(i Invariant, excused bool) Finding {
	f := i.judge(v)
	if !excused {
		f = v.explain(i, f)
	}
	return f
}

// add takes in what was found of a further API server, and says so.
func (f *Finding) add(name string, of Finding) {
	f.Judged, f.Count, f.when = f.Judged+of.Judged, f.Count+of.Count, append(f.when, of.when...)
	for _, x := range of.Violations {
		x.Seen, x.APIServer = name+": "+x.Seen, name
		f.Violations = append(f.Violations, x)
	}
	for _, x := range of.Starved {
		x.Seen, x.APIServer = name+": "+x.Seen, name
		f.Starved = append(f.Starved, x)
	}
	for _, m := range of.Measures {
		f.Measures = append(f.Measures, Measure{name + ": " + m.Name, m.Value})
	}
}

// latencies are those of all API servers.
func (v *view) latencies(further []furtherView) (detected, recovered []time.Duration) {
	for _, x := range append([]furtherView{{view: v}}, further...) {
		_, d := x.detections()
		_, r := x.recoveries()
		detected, recovered = append(detected, d...), append(recovered, r...)
	}
	return detected, recovered
}

// encryptor is the role of the API server that a configuration is told: in the history of a further one not that of whom its reporters
// write to.
func (v *view) encryptor() string {
	if len(v.processes(history.RoleFurther)) > 0 {
		return history.RoleFurther
	}
	return history.RoleAPIServer
}
