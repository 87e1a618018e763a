package facts

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Revised reports whether an event says that the pod of an API server was replaced.
func Revised(e *history.Event) bool {
	return e.Container != nil && e.Container.State == history.PodRevised
}

// revisions are, by node, when the pod of its API server was being replaced: from the end of the old API server until everything in the new pod ran, or until
// the run ended.
func revisions(log *Log, actions *Actions, processes *Processes) map[string]span.Set {
	spans := map[string][]span.Span{}
	asked := map[string]time.Time{} // by node, when its API server was asked to end, by no action, and no pod has come since
	role := processes.Encryptor()
	for e := range log.Each(history.KindProcess, history.KindContainer) {
		switch p := e.Process; {
		case Revised(e):
			node := e.Container.Node
			delete(asked, node)
			if began := processes.lastEnd(Process{Role: role, Node: node}, e.At); !began.IsZero() {
				spans[node] = append(spans[node], span.New(began, e.At))
			}
		case p == nil || p.Role != role:
		case p.State == history.ProcessStopping && !actions.UnderWay(e.At, Action.Ends):
			asked[p.Node] = e.At
		case p.State == history.ProcessReady:
			delete(asked, p.Node)
		}
	}
	for node, at := range asked {
		spans[node] = append(spans[node], span.New(at, log.Period.To))
	}
	out := map[string]span.Set{}
	for node, all := range spans {
		out[node] = span.Merge(all)
	}
	return out
}
