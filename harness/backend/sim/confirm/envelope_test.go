package confirm_test

import (
	"strings"
	"testing"
	"time"
)

// slack is what a busy machine may be late.
const slack = 3 * time.Second

// One boot, and four minutes, for every rule that is about a plugin that changes while its API server runs. Each of the API
// servers has a plugin with another fault.
func TestPluginThatChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("takes four minutes")
	}
	well, fails, unhealthy, differs := newPlugin(t).serve(t), newPlugin(t).serve(t), newPlugin(t).serve(t), newPlugin(t).serve(t)
	polled := newPlugin(t).serve(t)
	_, nodes := newWorld(t, 0, well, fails, unhealthy, differs, polled)
	for _, n := range nodes {
		if err := n.write("first-" + n.Name()); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	fails.is(func(b *behaviour) { b.fails = map[string]error{"Status": errDisabled} })
	unhealthy.is(func(b *behaviour) { b.healthz = "not well" })
	differs.is(func(b *behaviour) { b.keyID, b.encryptKeyID = "2", "1" })
	polled.is(func(b *behaviour) { b.fails = map[string]error{"Status": errDisabled} })

	t.Run("health", func(t *testing.T) { nodes[4].t = t; testHealth(nodes[4]) })
	pass(t, began.Add(3*time.Minute+5*time.Second))
	t.Run("well", func(t *testing.T) { testStatusEveryMinute(t, nodes[0], began) })
	t.Run("fails", func(t *testing.T) { testFails(t, nodes[1], began) })
	t.Run("unhealthy", func(t *testing.T) { testUnhealthyExtends(t, nodes[2]) })
	t.Run("differs", func(t *testing.T) { testDiffers(t, nodes[3]) })
	t.Run("recovers", func(t *testing.T) { testRecovers(t, nodes[1]) })
}

// testHealth: a Status that was well is believed for 20 s, one that failed for 3 s, and then told without the words of who asked.
func testHealth(n *node) {
	const raw = `rpc error: code = FailedPrecondition desc = failed precondition - key disabled`
	took := n.says("health of a plugin that fails", 25*time.Second, `^internal server error: kms-provider-0: failed to perform status section of the healthz check for KMS Provider kms-1, error: `+raw+`\n?$`, n.health)
	n.t.Logf("a fault was seen after %v", took)
	if got := n.health(); strings.TrimSpace(got) != "internal server error: kms-provider-0: "+raw {
		n.t.Errorf("asked again: %q", got)
	}
	since := time.Now()
	until := since.Add(15 * time.Second)
	for time.Now().Before(until) {
		n.health()
		pass(n.t, time.Now().Add(200*time.Millisecond))
	}
	if calls := len(n.called("Status", since)); calls < 4 || calls > 7 {
		n.t.Errorf("%d calls of Status in 15 s of being asked all the time, expected one every 3 s, and those of the poll", calls)
	}
	n.plugin.is(func(b *behaviour) { b.fails = nil })
	n.says("health of a plugin that is well again", 5*time.Second, `^ok$`, n.health)
}

func testStatusEveryMinute(t *testing.T, n *node, since time.Time) {
	for _, c := range n.called("Status", time.Time{}) {
		t.Logf("Status was asked at %v", c.Sub(since).Round(time.Millisecond))
	}
	at := n.called("Status", since)
	for i := 1; i < len(at); i++ {
		if gap := at[i].Sub(at[i-1]); gap < time.Minute-slack || gap > time.Minute+slack {
			t.Errorf("Status was asked after %v, expected a minute", gap)
		}
	}
	if len(at) < 2 { // the first tick is answered from memory if somebody asked shortly before
		t.Errorf("Status was asked %d times in 3 minutes and 5 s, expected every minute", len(at))
	}
	if n := len(n.called("Encrypt", since)); n != 0 {
		t.Errorf("%d keys were made, expected none: the key_id is the same", n)
	}
}

// testFails: every 10 s once it failed, and writes stop three minutes after the last Status that was good.
func testFails(t *testing.T, n *node, since time.Time) {
	at := n.called("Status", since)
	for i := 1; i < len(at); i++ {
		if gap := at[i].Sub(at[i-1]); gap < 10*time.Second-slack || gap > 10*time.Second+slack {
			t.Errorf("Status was asked after %v, expected 10 s", gap)
		}
	}
	if len(at) < 10 {
		t.Errorf("Status was asked %d times", len(at))
	}
	err := n.write("late")
	if err == nil || !strings.Contains(err.Error(), `Internal error occurred: encryptedDEKSource with keyID hash "sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b" expired at 2`) {
		t.Errorf("a write three minutes later: %v", err)
	}
	if err := n.read("first-" + n.Name()); err != nil {
		t.Errorf("a read three minutes later: %v", err)
	}
}

// testUnhealthyExtends: kubernetes/kubernetes#138950.
func testUnhealthyExtends(t *testing.T, n *node) {
	if err := n.write("unhealthy"); err != nil {
		t.Errorf("a plugin that is not well: %v, expected that writes go on: set UnhealthyCoasts as the default of the simulation", err)
	}
	n.t = t
	n.says("its health", 25*time.Second, `^internal server error: kms-provider-0: kmsv2 Provider kms-1 is not healthy, error: got unexpected healthz status: not well\n?$`, n.health)
}

func testDiffers(t *testing.T, n *node) {
	n.t = t
	n.says("its health", 25*time.Second, `kms-provider-0: kmsv2 Provider kms-1 is not healthy, error: failed to rotate DEK uid="[0-9a-f-]{36}", useSeed=true, errState=<nil>, errGen=<nil>, statusKeyIDHash="sha256:d4735e3a[0-9a-f]*", encryptKeyIDHash="sha256:6b86b273[0-9a-f]*", stateKeyIDHash="sha256:6b86b273[0-9a-f]*", expirationTimestamp=`, n.health)
	if err := n.write("differs"); err == nil || !strings.Contains(err.Error(), "expired at") {
		t.Errorf("a write three minutes after Encrypt and Status disagreed: %v", err)
	}
}

func testRecovers(t *testing.T, n *node) {
	n.t = t
	n.plugin.is(func(b *behaviour) { b.fails = nil })
	i := 0
	took := n.says("writes of a plugin that is well again", 10*time.Second+slack, `^ok$`, func() string { i++; return text(n.write("again")) })
	t.Logf("writes after %v", took)
	if keys := n.called("Encrypt", time.Time{}); len(keys) != 1 {
		t.Errorf("%d keys, expected that the one that had expired goes on", len(keys))
	}
}
