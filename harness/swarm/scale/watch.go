package scale

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// mostProblems are kept; a run that fails does so for one reason.
const mostProblems = 20

// watcher follows the history of a run, of which nothing is kept.
type watcher struct {
	nodes               int
	start               time.Time
	bound               time.Duration
	settled             time.Time // from then on, all must be well
	ticks, refused      int
	reporting           map[string]bool
	tooLarge            int
	fault               string    // node whose plugin is dead, or was and is still named
	since               time.Time // when it died, or came back
	back                bool      // it came back
	detected, recovered []time.Duration
	problems            []string
}

func newWatcher(nodes int, t contract.Timing) *watcher {
	return &watcher{nodes: nodes, bound: t.DetectionBound(), reporting: map[string]bool{}}
}

// see takes an event in.
func (w *watcher) see(e history.Event) {
	if w.start.IsZero() {
		w.start = e.At
		w.settled = e.At.Add(2 * w.bound)
	}
	switch {
	case e.Request != nil:
		w.answered(e.Request)
	case e.Object != nil:
		for i := range e.Object.Conditions {
			if c := &e.Object.Conditions[i]; c.Type == contract.ConditionDegraded {
				w.rollup(e.At, c)
			}
		}
	}
}

func (w *watcher) answered(r *history.Request) {
	node := r.Reporter()
	if node == "" || r.Verb != "patch" {
		return
	}
	w.ticks++
	switch {
	case r.Code == http.StatusOK:
		w.reporting[node] = true
		return
	case strings.Contains(r.Message, "request is too large") && w.tooLarge == 0:
		w.tooLarge = len(w.reporting)
	}
	w.refused++
}

func (w *watcher) rollup(at time.Time, c *history.Condition) {
	named := w.fault != "" && strings.Contains(c.Message, w.fault+"/")
	switch {
	case at.Before(w.settled) || w.tooLarge > 0: // those that cannot write are missing
	case w.fault != "" && !w.back && c.Status == "True" && named:
		w.detected = append(w.detected, w.took(at, "detected"))
	case w.fault != "" && w.back && c.Status == "True" && named: // in other words, until it is taken back within the bound
	case w.fault != "" && w.back && c.Status == "False":
		w.recovered = append(w.recovered, w.took(at, "taken back"))
		w.fault = ""
	default:
		w.problem("%v: KMSPluginsDegraded is %s/%s %q", at.Sub(w.start), c.Status, c.Reason, c.Message)
	}
}

func (w *watcher) took(at time.Time, what string) time.Duration {
	d := at.Sub(w.since)
	if d > w.bound {
		w.problem("%v: the fault of %s was %s after %v, allowed are %v", at.Sub(w.start), w.fault, what, d, w.bound)
	}
	return d
}

// failing and recovering are told what happens to a node's plugin. A fault that was not seen by now never was.
func (w *watcher) failing(node string, at time.Time) {
	if w.fault != "" && w.tooLarge == 0 {
		w.problem("%v: the fault of %s was not taken back", at.Sub(w.start), w.fault)
	}
	w.fault, w.since, w.back = node, at, false
}

func (w *watcher) recovering(at time.Time) {
	if len(w.detected) == len(w.recovered) && w.tooLarge == 0 {
		w.problem("%v: the fault of %s was not detected", at.Sub(w.start), w.fault)
	}
	w.since, w.back = at, true
}

func (w *watcher) problem(format string, args ...any) {
	if len(w.problems) < mostProblems {
		w.problems = append(w.problems, fmt.Sprintf(format, args...))
	}
}
