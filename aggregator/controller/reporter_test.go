package controller

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kmsharness/kmsharness/contract"
)

// fakeReporter applies reports under a reporter's identity.
type fakeReporter struct {
	e       *environment
	node    string
	client  dynamic.Interface
	typed   bool
	mu      sync.Mutex
	entries []contract.Entry
}

func (e *environment) reporter(node string, entries ...contract.Entry) *fakeReporter {
	client, err := dynamic.NewForConfig(e.as(contract.ReporterIdentity(node), contract.ReporterGroup))
	must(e, err)
	return &fakeReporter{e: e, node: node, client: client, entries: entries}
}

func healthyEntry(keyID, kekID string) contract.Entry {
	return contract.Entry{KeyID: keyID, KEKID: kekID, Status: contract.StatusHealthy}
}

func (r *fakeReporter) set(entries ...contract.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = entries
}

// report is what it would say now.
func (r *fakeReporter) report() contract.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := contract.Report{Node: r.node}
	for _, e := range r.entries {
		e.LastChecked = contract.RoundTime(time.Now(), interval)
		out.Entries = append(out.Entries, e)
	}
	return out
}

// write applies the current report once, in its form.
func (r *fakeReporter) write() error {
	report := r.report()
	if r.typed {
		return r.apply(contract.FieldManager(r.node), r.typedStatus(report))
	}
	return r.apply(contract.FieldManager(r.node), conditionStatus(report))
}

func conditionStatus(report contract.Report) map[string]any {
	message, err := contract.EncodeMessage(report.Entries)
	if err != nil {
		message = err.Error()
	}
	return map[string]any{"conditions": []any{map[string]any{
		"type": contract.ConditionType(report.Node), "status": "True", "reason": "AsExpected", "message": message,
		"lastTransitionTime": "2026-01-01T00:00:00Z",
	}}}
}

func (r *fakeReporter) typedStatus(report contract.Report) map[string]any {
	items, err := report.Typed(nil)
	must(r.e, err)
	data, err := json.Marshal(items)
	must(r.e, err)
	var list []any
	must(r.e, json.Unmarshal(data, &list))
	out := map[string]any{}
	must(r.e, unstructured.SetNestedSlice(out, list, r.e.operator.TypedPath[1:]...))
	return out
}

func (r *fakeReporter) apply(manager string, status map[string]any) error {
	op := r.e.operator
	o := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	o.SetAPIVersion("operator.openshift.io/v1")
	o.SetKind(op.Kind)
	o.SetName("cluster")
	_, err := r.client.Resource(operatorGVR(op)).ApplyStatus(context.Background(), "cluster", o, metav1.ApplyOptions{FieldManager: manager, Force: true})
	return err
}

// keepWriting writes three times per interval until the returned function is called. It is best effort, as every
// reporter is: one lost write is no failure of the aggregator.
func (r *fakeReporter) keepWriting() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(interval / 3)
		defer tick.Stop()
		for {
			if err := r.write(); err != nil && ctx.Err() == nil {
				r.e.Logf("reporter of %s: %v", r.node, err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); <-done }) }
	r.e.Cleanup(stop)
	return stop
}
