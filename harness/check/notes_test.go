package check

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// withDeath is a healthy run in which something dies at ten seconds and is back at once, so that no invariant minds.
func withDeath(payload any, before ...history.Action) Verdict {
	w := newWorld(3, "1")
	for i, a := range before {
		w.at(8*time.Second+time.Duration(i)*step, func(w *world) {
			for _, state := range []string{history.ActionBegan, history.ActionDone} {
				a.ID, a.State = fmt.Sprintf("steps[%d]", i), state
				one := a
				w.record("engine", &one)
			}
		})
	}
	w.at(10*time.Second, func(w *world) { w.record("containerd/cp-2", payload) })
	w.boot()
	return Run(w.finish(20 * time.Second))
}

func died(node, pod, name string) *history.Container {
	code := 137
	return &history.Container{Node: node, Namespace: "kube-system", Pod: pod, Name: name, State: history.ContainerExited, ExitCode: &code}
}

// A death that no action asked for is told, and judges nothing.
func TestDeathsNobodyAskedFor(t *testing.T) {
	process := func(verb, target string) history.Action {
		return history.Action{Verb: verb, Target: "process " + target}
	}
	pod := "kube-apiserver-cp-2"
	for name, c := range map[string]struct {
		v    Verdict
		want string
	}{
		"the reporter's container":   {withDeath(died("cp-2", pod, "kms-health-reporter")), "cp-2 kube-apiserver-cp-2/kms-health-reporter exited, exit code 137"},
		"the API server's":           {withDeath(died("cp-2", pod, "kube-apiserver")), "kube-apiserver-cp-2/kube-apiserver exited"},
		"a node":                     {withDeath(died("cp-2", "", "c-control-plane2")), "c-control-plane2 exited"},
		"a plugin's, by a fault":     {withDeath(died("cp-2", pod, "vault-kms-plugin-1")), ""},
		"etcd's":                     {withDeath(died("cp-2", "etcd-cp-2", "etcd")), ""},
		"it starts":                  {withDeath(&history.Container{Node: "cp-2", Pod: pod, Name: "kube-apiserver", State: history.ContainerStarted}), ""},
		"it was killed":              {withDeath(died("cp-2", pod, "kube-apiserver"), process("kill", "apiserver/cp-2")), ""},
		"all were":                   {withDeath(died("cp-2", pod, "kube-apiserver"), process("restart", "apiserver/*")), ""},
		"another was":                {withDeath(died("cp-2", pod, "kube-apiserver"), process("kill", "apiserver/cp-1")), "no action asked for that"},
		"something else was done":    {withDeath(died("cp-2", pod, "kube-apiserver"), history.Action{Verb: "inject", Target: "plugin cp-2/1"}), "no action asked for that"},
		"its node was removed":       {withDeath(died("cp-2", pod, "kube-apiserver"), history.Action{Verb: "node", Params: map[string]any{"remove": "cp-2"}}), ""},
		"another node was removed":   {withDeath(died("cp-2", pod, "kube-apiserver"), history.Action{Verb: "node", Params: map[string]any{"remove": "cp-3"}}), "no action asked for that"},
		"a reporter ended by itself": {withDeath(&history.Process{Role: history.RoleReporter, Node: "cp-2", State: history.ProcessExited, Detail: "exit status 2"}), `reporter/cp-2 ended by itself ("exit status 2")`},
		"an aggregator":              {withDeath(&history.Process{Role: history.RoleAggregator, Instance: 2, State: history.ProcessExited}), "aggregator 2 ended by itself"},
		"an operator":                {withDeath(&history.Process{Role: history.RoleOperator, State: history.ProcessExited, Detail: "exit code 1"}), `operator ended by itself ("exit code 1")`},
		"a plugin":                   {withDeath(&history.Process{Role: history.RolePlugin, Node: "cp-2", KeyID: "9", State: history.ProcessExited}), ""},
		"a stopped reporter":         {withDeath(&history.Process{Role: history.RoleReporter, Node: "cp-2", State: history.ProcessStopped}), ""},
	} {
		text := strings.Join(c.v.Notes, "\n")
		if (c.want == "") != (text == "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: notes %q, want %q", name, text, c.want)
		}
		if shown := strings.Contains(printed(t, c.v), "NOTE at 10s (12:00:10.000): "); shown != (c.want != "") {
			t.Errorf("%s: printed\n%s", name, printed(t, c.v))
		}
	}
	quiet, configured := withDeath(&history.Phase{Name: history.PhaseSteps}), withDeath(died("cp-2", pod, "kms-health-reporter"))
	if quiet.OK != configured.OK || len(quiet.Problems) != len(configured.Problems) {
		t.Errorf("a note judges:\n%s", printed(t, configured))
	}
}

// What containers did is shown, within bounds, whatever an engine says.
func TestContainersAreShown(t *testing.T) {
	w := newWorld(1, "1")
	w.at(5*time.Second, func(w *world) {
		for range MaxViolations {
			w.record("engine/cp-1", &history.Container{Node: "cp-1", Name: "c\x1b[31m", State: history.ContainerPaused})
		}
		w.record("engine/cp-1", died("cp-1", "", "c"))
	})
	w.boot()
	text := printed(t, Run(w.finish(20*time.Second)))
	for _, want := range []string{"containers:\n  at 5s (12:00:05.000) cp-1 c", "paused\n", "and 1 more in the history", "NOTE at 5s"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("an engine's text reaches the terminal as it is")
	}
}
