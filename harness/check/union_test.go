package check

import (
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// unitedHistory is a history of conditions of the CR and of the ClusterOperator's Degraded. Each line is an instant, "cr" or "co", and conditions: a letter,
// for the type XDegraded of a source or for a source that the message names, and a status.
func unitedHistory(rule contract.Union, lines string) []history.Event {
	w := newWorld(0)
	w.run.Union = rule
	w.record("engine", &w.run)
	var cr []*history.Condition
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		words := strings.Fields(line)
		after, err := time.ParseDuration(words[0])
		if err != nil {
			panic(err)
		}
		w.now = w.start.Add(after)
		switch words[1] {
		case "cr":
			cr = append([]*history.Condition{}, cr...)
			for _, word := range words[2:] {
				cr = changed(cr, word, w.now)
			}
			w.record("watch", &history.Object{Resource: "kubeapiservers.operator.openshift.io", Name: "cluster", Conditions: cr})
		case "co":
			c := history.Condition{Type: "Degraded", Status: words[2]}
			for _, source := range words[3:] {
				c.Message += source + "Degraded: text\n"
			}
			w.record("watch", &history.Object{Resource: "clusteroperators.config.openshift.io", Name: "kube-apiserver", Conditions: []*history.Condition{&c}})
		case "end":
			w.record("engine", &history.Phase{Name: history.PhaseEnd})
		}
	}
	return w.log.Events()
}

// changed sets a condition such as X=True, or X=True@1m with a lastTransitionTime a minute ago. Like a controller it moves that only with the status.
func changed(cr []*history.Condition, word string, now time.Time) []*history.Condition {
	name, status, _ := strings.Cut(word, "=")
	status, ago, dated := strings.Cut(status, "@")
	c := history.Condition{Type: name + "Degraded", Status: status, Message: now.String(), LastTransitionTime: stamp(now)}
	if d, err := time.ParseDuration(ago); dated && err == nil {
		c.LastTransitionTime = stamp(now.Add(-d))
	}
	for i := range cr {
		if cr[i].Type == c.Type {
			if cr[i].Status == c.Status && !dated {
				c.LastTransitionTime = cr[i].LastTransitionTime
			}
			cr[i] = &c
			return cr
		}
	}
	return append(cr, &c)
}

func TestUnionWithInertia(t *testing.T) {
	held := contract.Union{Inertia: contract.Inertia{All: 2 * time.Minute, Types: map[string]time.Duration{"SlowDegraded": 10 * time.Minute}}}
	joined := held
	joined.UnknownIsBad = true
	const own = "KMSPlugins"
	for name, c := range map[string]struct {
		rule  contract.Union
		lines string
		wrong string // in the violation; empty: none
	}{
		"after its inertia": {held, `
			0s      cr  X=False
			0s      co  False
			10s     cr  X=True
			130.5s  co  True X
			200s    cr  X=False
			200.5s  co  False
			300s    end`, ""},
		"shorter than its inertia": {held, `
			0s      cr  X=False
			0s      co  False
			10s     cr  X=True
			129s    cr  X=False
			300s    end`, ""},
		"written again, and counted from the first": {held, `
			0s      cr  X=False
			0s      co  False
			10s     cr  X=True
			70s     cr  X=True
			130.5s  co  True X
			200s    end`, ""},
		"within the second of its transition": {held, `
			0s      cr  ` + own + `=False
			0s      co  False
			10.9s   cr  ` + own + `=True@900ms
			130s    co  True ` + own + `
			200s    end`, ""},
		"another controller's condition that is old": {held, `
			0s      cr  X=False
			0s      co  False
			10s     cr  X=True@1h
			10.5s   co  True X
			200s    end`, ""},
		"a type with inertia of its own": {held, `
			0s      cr  Slow=False
			0s      co  False
			10s     cr  Slow=True
			610.5s  co  True Slow
			700s    end`, ""},
		"Unknown after its inertia, and bad after another": {held, `
			0s      cr  X=False
			0s      co  False
			10s     cr  X=Unknown
			130.5s  co  Unknown X
			140s    cr  X=True
			140.5s  co  False
			260.5s  co  True X
			300s    end`, ""},
		"one after the other": {held, `
			0s      cr  X=False Y=False
			0s      co  False
			10s     cr  X=True
			70s     cr  Y=True
			130.5s  co  True X
			190.5s  co  True X Y
			300s    end`, ""},
		"Unknown yields": {held, `
			0s      cr  X=False Y=False
			0s      co  False
			10s     cr  X=Unknown Y=True
			130.5s  co  True Y
			200s    end`, ""},
		"Unknown is bad, and one is old enough": {joined, `
			0s      cr  X=False Y=False
			0s      co  False
			10s     cr  X=Unknown
			130.5s  co  Unknown X
			140s    cr  Y=True
			140.5s  co  True X Y
			200s    end`, ""},

		"at once": {held, `
			0s      cr  X=False
			0s      co  False
			10s     cr  X=True
			10.5s   co  True X
			200s    end`, "True"},
		"a little early": {held, `
			0s      cr  X=False
			0s      co  False
			10s     cr  X=True
			128s    co  True X
			200s    end`, "True"},
		"never": {held, `
			0s      cr  X=False
			0s      co  False
			10s     cr  X=True
			200s    end`, "False"},
		"late": {held, `
			0s      cr  X=False
			0s      co  False
			10s     cr  X=True
			132s    co  True X
			200s    end`, "False"},
		"counted from the last write": {held, `
			0s      cr  ` + own + `=False
			0s      co  False
			10s     cr  ` + own + `=True
			70s     cr  ` + own + `=True@0s
			190.5s  co  True ` + own + `
			200s    end`, "False"},
		"early because of a transition time that cannot be": {held, `
			0s      cr  ` + own + `=False
			0s      co  False
			10s     cr  ` + own + `=True@1h
			10.5s   co  True ` + own + `
			200s    end`, "True"},
		"the inertia of other types": {held, `
			0s      cr  Slow=False
			0s      co  False
			10s     cr  Slow=True
			130.5s  co  True Slow
			700s    end`, "True"},
		"Unknown at once": {held, `
			0s      cr  X=False
			0s      co  False
			10s     cr  X=Unknown
			10.5s   co  Unknown X
			200s    end`, "Unknown"},
		"named before its own inertia is over": {held, `
			0s      cr  X=False Y=False
			0s      co  False
			10s     cr  X=True
			70s     cr  Y=True
			130.5s  co  True X Y
			300s    end`, "True"},
		"Unknown does not yield": {joined, `
			0s      cr  X=False Y=False
			0s      co  False
			10s     cr  X=Unknown
			130.5s  co  Unknown X
			140s    cr  Y=True
			200s    end`, "Unknown"},
		"Unknown is left out": {joined, `
			0s      cr  X=False Y=False
			0s      co  False
			10s     cr  X=Unknown Y=True
			130.5s  co  True Y
			200s    end`, "True"},
		"no inertia": {contract.Union{}, `
			0s      cr  X=False
			0s      co  False
			10s     cr  X=True
			130.5s  co  True X
			200s    end`, "False"},
	} {
		v := Run(unitedHistory(c.rule, c.lines))
		var got *Violation
		for _, r := range v.Invariants {
			if r.ID == "UNION" && len(r.Violations) > 0 {
				got = &r.Violations[0]
			}
		}
		switch {
		case c.wrong == "" && statusOf(v, "UNION") != Passed:
			t.Errorf("%s: %s %+v", name, statusOf(v, "UNION"), got)
		case c.wrong != "" && (got == nil || !strings.Contains(got.Seen, "Degraded="+c.wrong)):
			t.Errorf("%s: %s %+v, want Degraded=%s", name, statusOf(v, "UNION"), got, c.wrong)
		}
	}
}

// Available has no inertia: one that is held back is late.
func TestUnionOfAvailableHasNoInertia(t *testing.T) {
	for delay, want := range map[time.Duration]Status{time.Second / 2: Passed, 2 * time.Minute: Failed} {
		w := newWorld(0)
		w.run.Union = contract.Union{Inertia: contract.Inertia{All: 2 * time.Minute}}
		w.record("engine", &w.run)
		for _, s := range []struct {
			after    time.Duration
			resource string
			c        history.Condition
		}{
			{0, "kubeapiservers.operator.openshift.io", history.Condition{Type: "XAvailable", Status: "True"}},
			{0, "clusteroperators.config.openshift.io", history.Condition{Type: "Available", Status: "True"}},
			{10 * sec, "kubeapiservers.operator.openshift.io", history.Condition{Type: "XAvailable", Status: "False"}},
			{10*sec + delay, "clusteroperators.config.openshift.io", history.Condition{Type: "Available", Status: "False", Message: "XAvailable: text"}},
		} {
			name := map[bool]string{true: "cluster", false: "kube-apiserver"}[strings.HasPrefix(s.resource, "kube")]
			w.log.Record(w.start.Add(s.after), "watch", &history.Object{Resource: s.resource, Name: name, Conditions: []*history.Condition{&s.c}})
		}
		w.log.Record(w.start.Add(200*sec), "engine", &history.Phase{Name: history.PhaseEnd})
		if got := statusOf(Run(w.log.Events()), "UNION"); got != want {
			t.Errorf("Available after %v: %s, want %s", delay, got, want)
		}
	}
}

// An operator under test that writes the ClusterOperator is judged like the aggregator, while it runs, and the aggregator may not write it.
func TestClusterOperatorLeftToAnOperator(t *testing.T) {
	hides := func(co []*history.Condition) []*history.Condition {
		co[0].Status = "False"
		return co
	}
	for name, tt := range map[string]struct {
		union  func([]*history.Condition) []*history.Condition
		killed bool
		seizes bool
		want   Status
	}{
		"right":                         {want: Passed},
		"hides a failure":               {union: hides, want: Failed},
		"does not run":                  {union: hides, killed: true, want: NotJudged},
		"the aggregator writes it, too": {seizes: true, want: Failed},
	} {
		w := newWorld(3, "1")
		w.run.Union.Leave, w.bad.union, w.bad.seizes = true, tt.union, tt.seizes
		operator := func(state string) { w.record("backend", &history.Process{Role: history.RoleOperator, State: state}) }
		w.boot()
		operator(history.ProcessReady)
		if tt.killed {
			operator(history.ProcessKilled)
		}
		w.at(190*sec, func(w *world) { w.fault("cp-1/1", "unhealthy") })
		if got := statusOf(Run(w.finish(200*sec)), "UNION"); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
