package sim

import (
	"errors"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/exchange"
)

// A node that joins without an operator begins with the newest revision all the same, and one of its name is another one.
func TestNodeJoinsWithoutTheOperator(t *testing.T) {
	e := underOperator(t)
	if err := e.do(t, aescbc(), 30*time.Second); err != nil {
		t.Fatal(err)
	}
	e.pods.operator.end(history.ProcessKilled, "")
	before := e.pods.pods["cp-3"]
	if err := e.do(t, &scenario.Node{Replace: "cp-3", With: "cp-3"}, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	after := e.pods.pods["cp-3"]
	if after == before || after.inForce.config.Writer().Name() != "aescbc-1" || e.pods.writer() != "aescbc-1" {
		t.Errorf("it has %+v in force, and the writer is %q", after.inForce, e.pods.writer())
	}
	if err := e.pods.same("cp-3"); !errors.Is(err, exchange.ErrBehind) {
		t.Errorf("what was planned for the one before is carried out: %v", err)
	}
	e.pods.nodes()
	if err := e.pods.same("cp-3"); err != nil {
		t.Error(err)
	}
}

// A node counts while it comes, and not any more when it is gone.
func TestNodeCountsWhileItComes(t *testing.T) {
	e := underOperator(t)
	e.w.k.Go(func() { _ = e.Do(t.Context(), &scenario.Node{Add: "cp-4"}) })
	e.w.k.RunUntil(e.w.k.Now().Add(time.Second))
	if n, there := e.pods.nodes()["cp-4"]; !there || !n.Unavailable || n.Up || len(e.Nodes()) != 3 {
		t.Errorf("%+v while it comes, beside %v", n, e.Nodes())
	}
	e.w.k.RunUntil(e.w.k.Now().Add(10 * time.Second))
	if n := e.pods.nodes()["cp-4"]; n.Unavailable || !n.Up || n.Since.IsZero() {
		t.Errorf("%+v when it is there", n)
	}
	if err := e.do(t, &scenario.Node{Remove: "cp-4"}, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if n, there := e.pods.nodes()["cp-4"]; there || e.pods.pods["cp-4"] != nil {
		t.Errorf("%+v when it is gone", n)
	}
}
