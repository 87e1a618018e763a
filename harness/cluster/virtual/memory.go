package virtual

import (
	"strconv"
	"time"

	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/apiserver"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/watch"
)

func (g *ground) Refuse(what history.Refusal, count int, lasting time.Duration, over func(history.Refusal)) {
	g.cluster.refused.begin(&refusal{what: what, left: count, over: over}, lasting)
}

func (g *ground) Permit(role, object, node string) {
	g.cluster.refused.end(func(f *refusal) bool {
		return (role == "" || role == f.what.Role) && (object == "" || object == f.what.Object) && (node == "" || node == f.what.Node)
	})
}

func (g *ground) DelayWatches(node string, late time.Duration) {
	for _, s := range g.cluster.all() {
		if node == "" || s.node == node {
			s.watches.Delay(late)
		}
	}
}

func (g *ground) EndWatches(node string, expired bool) {
	for _, s := range g.cluster.all() {
		if node == "" || s.node == node {
			s.watches.End(expired)
		}
	}
}

func (g *ground) Observe(to *watch.Sequence, targets []watch.Target) {
	of := map[store.Key]watch.Target{}
	for _, t := range targets {
		of[store.Key{Resource: t.GVR, Name: t.Name}] = t
	}
	g.cluster.objects.Observe(func(e store.Event) {
		t, ok := of[e.Version.Key]
		switch {
		case !ok:
		case e.Type == apiwatch.Deleted:
			to.Absent(t, strconv.FormatInt(e.Revision, 10), time.Now())
		default:
			to.Present(t, e.Version.Shown(), time.Now())
		}
	})
}

func (g *ground) Changed(path string) bool { return g.machine.files.Changed(path) }

// ofAggregator reports whether a request is one of the aggregators'.
func ofAggregator(q *apiserver.Request) bool { return q.User.GetName() == contract.AggregatorIdentity }
