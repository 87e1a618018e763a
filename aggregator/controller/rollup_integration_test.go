package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/election"
)

const (
	latency   = time.Second            // A
	tolerance = 500 * time.Millisecond // of a busy machine
)

// One aggregator's life on a real API server: rollups, quiet, detection, staleness, cleanup, disabled KMS.
func TestAggregatorOnARealAPIServer(t *testing.T) {
	e := start(t, "kubeapiserver")
	e.addNode("cp-1")
	e.addNode("cp-2")
	r := e.run(func(*Config) {})
	eventually(t, 5*time.Second, "False/AwaitingFirstReport", func() string { return e.condition(contract.ConditionDegraded) })

	one, two := e.reporter("cp-1", healthyEntry("1", "kek-a")), e.reporter("cp-2", healthyEntry("1", "kek-a"))
	two.typed = true
	one.keepWriting()
	stopTwo := two.keepWriting()
	eventually(t, 5*time.Second, "False/AsExpected", func() string { return e.condition(contract.ConditionDegraded) })
	eventually(t, latency, "False/AsExpected", func() string { return e.condition(contract.ConditionProgressing) })
	eventually(t, latency, "True/AsExpected", func() string { return e.union("Available") })
	e.quiet(r)

	one.set(contract.Entry{KeyID: "1", Status: contract.StatusError, Detail: "Unavailable: no such socket"})
	must(t, one.write())
	took := eventually(t, latency+tolerance, "True/PluginUnreachable", func() string { return e.condition(contract.ConditionDegraded) })
	t.Logf("visible after %v", took)
	eventually(t, latency, "True/KMSPlugins_PluginUnreachable", func() string { return e.union("Degraded") })
	eventually(t, latency, "False/KMSPlugins_NoUsableWriteKey", func() string { return e.union("Available") })
	one.set(healthyEntry("1", "kek-a"))
	must(t, one.write())
	eventually(t, latency+tolerance, "False/AsExpected", func() string { return e.union("Degraded") })

	stopTwo()
	eventually(t, 4*interval+latency+tolerance, "Unknown/ReportStale", func() string { return e.condition(contract.ConditionDegraded) })
	e.lateWriter(two)
	e.disable(one)
	r.stop()
}

// quiet: reports come in, rollups stay, nothing is written.
func (e *environment) quiet(r *running) {
	before := -1.0
	eventually(e, 4*interval, "settled", func() string { // the last of the writes before may still be under way
		last := before
		before = e.writes(r)
		throughout(e, interval/4, "False/AsExpected", func() string { return e.condition(contract.ConditionDegraded) })
		if last == before {
			return "settled"
		}
		return "writing"
	})
	throughout(e, 4*interval, "False/AsExpected", func() string { return e.condition(contract.ConditionDegraded) })
	if after := e.writes(r); after != before {
		e.Errorf("%v writes in a steady state", after-before)
	}
}

// lateWriter: the report of a node that goes is removed at once; what a late reporter writes after that stays until
// it is stale, and then goes for good.
func (e *environment) lateWriter(late *fakeReporter) {
	must(e, late.write())
	eventually(e, latency+tolerance, "False/AsExpected", func() string { return e.condition(contract.ConditionDegraded) })
	e.removeNode(late.node)
	eventually(e, latency+tolerance, "gone", func() string { return e.presence(late.node) })
	if status, _ := e.cr().Object["status"].(map[string]any); status["encryptionStatus"] != nil {
		e.Error("an empty encryptionStatus is left behind")
	}
	for range 3 {
		must(e, late.write())
		throughout(e, interval, "present", func() string { return e.presence(late.node) })
	}
	eventually(e, 4*interval+latency+tolerance, "gone", func() string { return e.presence(late.node) })
	if got := e.condition(contract.ConditionDegraded); got != "False/AsExpected" {
		e.Errorf("a gone node's report counts: %s", got)
	}
}

// disable: with KMS the rollups and the reports go, and the ClusterOperator is well.
func (e *environment) disable(last *fakeReporter) {
	e.encryption("aescbc")
	eventually(e, latency+tolerance, "", func() string { return e.condition(contract.ConditionDegraded) })
	eventually(e, 4*interval, "True/AsExpected", func() string { return e.union("Available") })
	e.encryption("KMS")
	eventually(e, latency+2*interval, "False/AsExpected", func() string { return e.condition(contract.ConditionDegraded) })
	if got := e.presence(last.node); got != "present" {
		e.Errorf("the reporter's next write after KMS was enabled again: %s", got)
	}
}

func (e *environment) presence(node string) string {
	if _, ok := e.observed().Reports[node]; ok {
		return "present"
	}
	return "gone"
}

func (e *environment) holder() string {
	leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	lease, err := e.admin.Resource(leases).Namespace("kms-health").Get(e.ctx, "test", metav1.GetOptions{})
	must(e, err)
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	return holder
}

// Two aggregators: one works, the other takes over as soon as the first has ended.
func TestHandover(t *testing.T) {
	e := start(t, "kubeapiserver")
	e.addNode("cp-1")
	e.reporter("cp-1", healthyEntry("1", "kek-a")).keepWriting()
	elected := func(identity string) func(*Config) {
		return func(c *Config) {
			c.Election = &election.Options{
				Namespace: "kms-health", Name: "test", Identity: identity,
				LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond,
			}
		}
	}
	first := e.run(elected("first"))
	eventually(t, 10*time.Second, "False/AsExpected", func() string { return e.condition(contract.ConditionDegraded) })
	second := e.run(elected("second"))
	throughout(t, interval, "0", func() string { return number(e.writes(second)) })
	first.stop()
	began := time.Now()
	eventually(t, 2*time.Second, "second", e.holder)
	t.Logf("handed over after %v", time.Since(began))
	throughout(t, 2*interval, "False/AsExpected", func() string { return e.condition(contract.ConditionDegraded) })
	if got := e.writes(second); got != 0 {
		t.Errorf("the successor wrote %v times although nothing changed", got)
	}
}
