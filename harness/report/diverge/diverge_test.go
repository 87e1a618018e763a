package diverge_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/report/diverge"
)

var began = time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)

// run is a history in which everything takes place later, by factor, and each healthy answer is given repeat times.
func run(kek string, factor float64, repeat int, answers ...string) []history.Event {
	log := history.NewLog(nil)
	at := func(n float64) time.Time { return began.Add(time.Duration(n * factor * float64(time.Second))) }
	log.Record(at(0), "engine", &history.Run{Schema: history.Schema, Scenario: "s", Backend: "sim", Operator: "kubeapiservers"})
	log.Record(at(1), "engine", &history.Phase{Name: history.PhaseBefore})
	log.Record(at(2), "engine", &history.Action{ID: "steps[0]", Verb: "inject", Target: "plugin cp-1/1", State: history.ActionDone})
	for i, healthz := range answers {
		for n := range repeat {
			log.Record(at(3+float64(i)+float64(n)/100), "journal", &history.Call{Node: "cp-1", KeyID: "1", Method: "Status", Outcome: "ok", Code: "OK", Healthz: healthz, KEKID: kek, Took: time.Duration(factor * 1e6)})
		}
	}
	log.Record(at(20), "engine", &history.Phase{Name: history.PhaseEnd})
	log.Record(at(20), "engine", &history.End{Complete: true})
	return log.Events()
}

func TestCompare(t *testing.T) {
	good := run("kek-00000a", 1, 1, "ok", "sealed", "ok")
	for name, c := range map[string]struct {
		other []history.Event
		want  diverge.Verdict
		text  []string
	}{
		"the same":                    {run("kek-00000a", 1, 1, "ok", "sealed", "ok"), diverge.Equal, []string{"equal: every event is the same"}},
		"slower":                      {run("kek-00000a", 1.7, 1, "ok", "sealed", "ok"), diverge.TimesOnly, []string{"equal but for times"}},
		"more often, and another key": {run("kek-00000b", 1, 3, "ok", "sealed", "ok"), diverge.TimesOnly, nil},
		"another answer": {run("kek-00000b", 1, 1, "ok", "locked", "ok"), diverge.Different, []string{
			"first divergence: Status of plugin cp-1/1", `healthz="ok"`, `+3.000s  5      ok OK healthz="sealed"`, `+3.000s  5      ok OK healthz="locked"`, "after steps[0] inject plugin cp-1/1"}},
		"an answer less": {run("kek-00000a", 1, 1, "ok", "sealed"), diverge.Different, []string{"nothing more"}},
		"none at all":    {run("kek-00000a", 1, 1), diverge.Different, []string{"nothing before"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := diverge.Compare(good, c.other)
			var b bytes.Buffer
			if err := r.Print(&b, [2]string{"a", "b"}, [2][]history.Event{good, c.other}); err != nil || r.Verdict != c.want {
				t.Errorf("%s, %v, expected %s:\n%s", r.Verdict, err, c.want, b.String())
			}
			for _, want := range c.text {
				if !strings.Contains(b.String(), want) {
					t.Errorf("no %q in\n%s", want, b.String())
				}
			}
			if back := diverge.Compare(c.other, good); back.Verdict != c.want {
				t.Errorf("the other way round: %s", back.Verdict)
			}
		})
	}
}

// How things come up before the steps is chance; only their last word counts.
func TestTheBeginningIsChance(t *testing.T) {
	side := func(answers ...string) []history.Event {
		log := history.NewLog(nil)
		log.Record(began, "engine", &history.Run{Schema: history.Schema, Operator: "kubeapiservers"})
		for i, healthz := range answers {
			if i == len(answers)-1 {
				log.Record(began.Add(10*time.Second), "engine", &history.Phase{Name: history.PhaseSteps})
			}
			log.Record(began.Add(time.Duration(i+1)*time.Second*time.Duration(1+i/(len(answers)-1)*10)), "journal", &history.Call{Node: "n", KeyID: "1", Method: "Status", Healthz: healthz})
		}
		return log.Events()
	}
	if r := diverge.Compare(side("starting", "ok", "sealed"), side("ok", "sealed")); r.Verdict != diverge.TimesOnly {
		t.Errorf("%s: %+v", r.Verdict, r.First)
	}
	if r := diverge.Compare(side("starting", "ok", "sealed"), side("starting", "sealed")); r.Verdict != diverge.Different {
		t.Errorf("%s although the last word was another", r.Verdict)
	}
}

// What was different before something else is the first divergence, in whichever strand it is.
func TestTheEarliestStrandIsFirst(t *testing.T) {
	a, b := run("kek-00000a", 1, 1, "ok", "sealed"), run("kek-00000a", 1, 1, "ok", "locked")
	a = append(a, history.Event{Seq: 90, At: began.Add(2500 * time.Millisecond), Kind: history.KindProcess, Process: &history.Process{Role: "reporter", Node: "cp-1", State: history.ProcessExited}})
	r := diverge.Compare(a, b)
	if r.First == nil || r.First.Strand != "process reporter cp-1" || len(r.Others) != 1 {
		t.Errorf("%+v", r)
	}
}
