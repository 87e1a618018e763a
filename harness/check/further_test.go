package check

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
)

const twin = history.OpenShiftAPIServer

// twins is one history of two API servers: the main one's and the twin's, each as if it were alone.
func twins(main, further []history.Event) []history.Event {
	rename := strings.NewReplacer("kubeapiservers", "openshiftapiservers")
	out := append([]history.Event{}, main[:len(main)-1]...)
	head := *main[0].Run
	head.APIServers = []history.AggregatedAPIServer{{Name: twin, Operator: "openshiftapiservers", ClusterOperator: twin}}
	out[0].Run = &head
	for _, e := range further {
		switch {
		case e.Kind == history.KindObject:
			o := *e.Object
			if o.Resource, o.Name = rename.Replace(o.Resource), strings.Replace(o.Name, "kube-apiserver", twin, 1); o.ResourceVersion != "" {
				o.ResourceVersion = "9" + o.ResourceVersion
			}
			e.Object = &o
		case e.Kind == history.KindRequest:
			r := *e.Request
			if r.Resource, r.Name = rename.Replace(r.Resource), strings.Replace(r.Name, "kube-apiserver", twin, 1); r.ResourceVersion != "" {
				r.ResourceVersion = "9" + r.ResourceVersion
			}
			e.Request = &r
		case e.Kind == history.KindCall, e.Kind == history.KindExpected, e.Kind == history.KindMetrics, e.Kind == history.KindAction,
			e.Kind == history.KindProcess && e.Process.Role != history.RoleAPIServer:
			e.APIServer = twin
			if e.Action != nil {
				a := *e.Action
				a.ID += " beside"
				e.Action = &a
			}
		default:
			continue
		}
		out = append(out, e)
	}
	out = append(out, main[len(main)-1])
	out = append([]history.Event{out[0]}, history.InTime(out[1:])...)
	for i := range out {
		out[i].Seq = int64(i + 1)
	}
	return out
}

func failedIDs(v Verdict) map[string]Result {
	out := map[string]Result{}
	for _, r := range v.Invariants {
		if r.Status == Failed {
			out[r.ID] = r
		}
	}
	return out
}

// What fails at one API server is nobody else's fault, and what is well stays well.
func TestTwoAPIServersAreJudgedEachByItself(t *testing.T) {
	for _, fault := range []string{"", "hang", "error", "down"} {
		well, bad := faulty(nil, ""), faulty(nil, fault)
		for name, events := range map[string][]history.Event{"kube-apiserver": twins(bad, well), twin: twins(well, bad)} {
			if v := Run(events); !v.OK {
				t.Errorf("%q at %s: %+v %v", fault, name, failedIDs(v), v.Problems)
			}
		}
	}
}

// Mistakes of what belongs to a further API server are found, and said to be its own.
func TestMistakesOfAFurtherAPIServer(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	caught := 0
	for _, k := range knownBad() {
		if len(k.build()) == 0 || !strings.Contains("FALSE-HEALTHY FALSE-ALARM DETECTION CADENCE FORMAT MONOTONIC ROLLUP-TRUTH UNION", k.id) {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			bad := k.build()
			if alone := Run(bad); failedIDs(alone)[k.id].Count == 0 {
				t.Skip("it is no mistake of that kind alone")
			}
			found := failedIDs(Run(twins(faulty(nil, ""), bad)))[k.id]
			if found.Count == 0 || !strings.HasPrefix(found.Violations[0].Seen, twin+": ") {
				t.Errorf("not found: %+v", found)
			}
			caught++
		})
	}
	if caught < 8 {
		t.Errorf("%d mistakes were tried, expected several", caught)
	}
}
