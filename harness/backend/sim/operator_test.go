package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend"
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// underOperator is an environment with an operator, some time after its beginning.
func underOperator(t *testing.T) *environment {
	t.Helper()
	types, err := labTypes()
	if err != nil {
		t.Fatal(err)
	}
	s := scenario.Scenario{Name: "operated", Topology: scenario.Topology{Lifecycle: scenario.LifecycleOperator}}.WithDefaults()
	e, err := newEnvironment(backend.Spec{Scenario: s, Seed: 1, Log: history.NewLog(nil)}, LocalTiming(), objects.New(types, objects.Options{SSA: objects.Model}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.w.k.Close)
	e.w.k.RunUntil(e.w.k.Now().Add(time.Second))
	return e
}

// do carries out an action and lets time pass after it.
func (e *environment) do(t *testing.T, a scenario.Action, wait time.Duration) error {
	t.Helper()
	var err error
	e.w.k.Go(func() { err = e.Do(t.Context(), a) })
	e.w.k.RunUntil(e.w.k.Now().Add(wait))
	return err
}

func aescbc() *scenario.APIServer {
	return &scenario.APIServer{Type: "aescbc"}
}

func (e *environment) isAt() string {
	if e.pods.decided == nil {
		return "nothing was decided"
	}
	return e.pods.decided.Stage
}

// An operator that is killed while a request of its own is under way does nothing more, and the next one goes on.
func TestOperatorIsKilledAnywhere(t *testing.T) {
	for _, after := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 300 * time.Millisecond, time.Second, 2 * time.Second} {
		e := underOperator(t)
		if err := e.do(t, aescbc(), after+20*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		e.pods.operator.end(history.ProcessKilled, "")
		e.w.k.RunUntil(e.w.k.Now().Add(time.Second))
		before := len(e.w.log.Events())
		e.w.k.RunUntil(e.w.k.Now().Add(5 * time.Second))
		for _, ev := range e.w.log.Events()[before:] {
			if ev.Decision != nil || ev.Encryption != nil {
				t.Errorf("killed after %v: %+v", after, ev)
			}
		}
		e.pods.operator.start(func() {})
		e.w.k.RunUntil(e.w.k.Now().Add(30 * time.Second))
		if w := e.pods.writer(); w != "aescbc-1" || e.isAt() != "" {
			t.Errorf("killed after %v: the writer is %q at the stage %q", after, w, e.isAt())
		}
	}
}

// Without an API server that answers an operator waits, and misses nothing.
func TestOperatorWithoutAnAPIServer(t *testing.T) {
	e := underOperator(t)
	if err := e.do(t, aescbc(), 0); err != nil {
		t.Fatal(err)
	}
	e.w.balancer.end(history.ProcessKilled, "")
	e.w.k.RunUntil(e.w.k.Now().Add(10 * time.Second))
	if w := e.pods.writer(); w != "identity" {
		t.Errorf("the writer is %q, and nobody could be reached", w)
	}
	e.w.balancer.start(func() {})
	e.w.k.RunUntil(e.w.k.Now().Add(30 * time.Second))
	if w := e.pods.writer(); w != "aescbc-1" {
		t.Errorf("the writer is %q", w)
	}
}

// What no API takes is said, and what the operator cannot do as well.
func TestOperatorRefusals(t *testing.T) {
	e := underOperator(t)
	bad := &scenario.APIServer{Type: "KMS", Sections: map[string]map[string]any{"vault": {"vaultAddress": "http://vault.example.com"}}}
	if err := e.do(t, bad, time.Second); err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("an address without https: %v", err)
	}
	bad.Expect = scenario.OutcomeRefused
	if err := e.do(t, bad, time.Second); err != nil {
		t.Errorf("what was expected to be refused: %v", err)
	}
	good := aescbc()
	good.Expect = scenario.OutcomeRefused
	if err := e.do(t, good, time.Second); err == nil {
		t.Error("what is accepted was expected to be refused")
	}
	pause := &scenario.Process{Do: scenario.VerbPause, Target: scenario.Selector{Role: history.RoleOperator}}
	if err := e.do(t, pause, time.Second); err == nil || !strings.Contains(err.Error(), "stand still") {
		t.Errorf("pause: %v", err)
	}
}

// Each API server has an operator of its own, which acts upon the one configuration by objects, plugins and keys that are no other's. One that is
// killed holds up nobody else.
func TestOperatorsOfThreeAPIServers(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	e, oauth := with(t, scenario.Topology{Lifecycle: scenario.LifecycleOperator, APIServers: scenario.APIServers()})
	e.must(t, kill(history.RoleOperator, history.OAuthAPIServer, ""), 0)
	e.must(t, &scenario.APIServer{Type: "KMS", Sections: map[string]map[string]any{"vault": {"vaultKeyPath": "transit/keys/one"}}}, 90*time.Second)
	for _, one := range e.all() {
		want := "kms-1"
		if one == oauth {
			want = "identity"
		}
		if got := one.pods.writer(); got != want || one.isAt() != "" && one != oauth {
			t.Errorf("the writer of %q is %q at the stage %q, want %q", one.w.apiServer, got, one.isAt(), want)
		}
	}
	oauth.pods.operator.start(func() {})
	e.w.k.RunUntil(e.w.k.Now().Add(90 * time.Second))
	keys := map[string]bool{}
	for _, one := range e.all() {
		keys[one.w.remoteKey("1")] = true
		if e.w.secrets[revision.KeyName(one.w.component(), 1)] == nil || len(one.pods.decided.Keys) != 1 || one.pods.writer() != "kms-1" {
			t.Errorf("%q: the writer is %q, of the keys %v", one.w.apiServer, one.pods.writer(), one.pods.decided.Keys)
		}
	}
	if len(keys) != 3 {
		t.Errorf("behind the plugins of three API servers are the keys %v", keys)
	}
}
