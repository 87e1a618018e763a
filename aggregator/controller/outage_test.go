package controller

import (
	"net/url"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/aggregator/reconcile"
	"github.com/kmsharness/kmsharness/contract"
)

// The latency A is kept from the moment at which the API server can be reached again, after an outage of any kind
// that is longer than client-go's first back-off steps.
func TestLatencyAfterAnOutage(t *testing.T) {
	must(t, DetectDeadConnections())
	e := start(t, "kubeapiserver")
	e.addNode("cp-1")
	server, err := url.Parse(e.config.Host)
	must(t, err)
	g := newGate(t, server.Host)
	one := e.reporter("cp-1", healthyEntry("1", "kek-a"))
	one.keepWriting()
	degraded := func() string { return e.condition(contract.ConditionDegraded) }
	e.run(func(c *Config) {
		c.REST.Host = "https://" + g.listener.Addr().String()
	})
	for name, mode := range map[string]gateMode{"reset": resetting, "silent": silent} {
		bound := latency + tolerance
		if mode == silent {
			bound += reconcile.FirstByteTimeout // of an attempt that began before the end and cannot succeed any more
		}
		one.set(healthyEntry("1", "kek-a"))
		eventually(t, 5*time.Second, "False/AsExpected", degraded)
		g.set(mode)
		one.set(contract.Entry{KeyID: "1", Status: contract.StatusError, Detail: "down"})
		throughout(t, 6*interval, "False/AsExpected", degraded)
		g.set(passing)
		took := eventually(t, bound, "True/PluginUnreachable", degraded)
		t.Logf("%s: visible %v after the end of the outage", name, took)
	}
}
