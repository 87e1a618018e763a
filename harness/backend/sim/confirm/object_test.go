package confirm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

var operators = schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: "kubeapiservers"}

const statusPath = "/apis/operator.openshift.io/v1/kubeapiservers/cluster/status"

// objects is an API server with the operator's CR.
type objects struct {
	*node
	client dynamic.Interface
}

func newObjects(t *testing.T) *objects {
	t.Helper()
	cp, nodes := newWorld(t, 0, (*plugin)(nil))
	list, err := crds.List(crds.TechPreview)
	if err != nil {
		t.Fatal(err)
	}
	var manifests []*unstructured.Unstructured
	for _, crd := range list {
		o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: o}
		u.SetAPIVersion("apiextensions.k8s.io/v1")
		u.SetKind("CustomResourceDefinition")
		manifests = append(manifests, u)
	}
	if err := cp.Install(t.Context(), manifests...); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(nodes[0].config)
	if err != nil {
		t.Fatal(err)
	}
	o := &objects{nodes[0], client}
	o.create()
	return o
}

func (o *objects) create() (version string) {
	o.t.Helper()
	cr := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operator.openshift.io/v1", "kind": "KubeAPIServer",
		"metadata": map[string]any{"name": "cluster"}, "spec": map[string]any{"managementState": "Managed"}}}
	got, err := o.client.Resource(operators).Create(o.t.Context(), cr, metav1.CreateOptions{})
	if err != nil {
		o.t.Fatal(err)
	}
	return got.GetResourceVersion()
}

// apply is a reporter's write.
func (o *objects) apply(ctx context.Context, manager, detail string, timeout time.Duration) error {
	e := contract.Entry{KeyID: "1", KEKID: "kek-0123456789abcdef", Status: contract.StatusUnhealthy, Detail: detail, LastChecked: time.Now()}
	body, err := publish.ConditionsBody(publish.KubeAPIServer, contract.Report{Node: manager, Entries: []contract.Entry{e}}, time.Now())
	if err != nil {
		return err
	}
	r := o.admin.RESTClient().Patch(types.ApplyYAMLPatchType).AbsPath(statusPath).Param("fieldManager", manager).Param("force", "true").Body(body)
	if timeout > 0 {
		r = r.Param("timeout", timeout.String())
	}
	var code int
	raw, err := r.Do(ctx).StatusCode(&code).Raw()
	var status metav1.Status
	if err != nil && json.Unmarshal(raw, &status) == nil && status.Message != "" {
		return fmt.Errorf("%d %s", code, status.Message)
	}
	return err
}

// What a client is told whose request took longer than it allowed, and than any request may take.
const (
	tooLongForTheClient = "504 Timeout: request did not complete within the allotted timeout"
	tooLongForAnybody   = "504 Timeout: request did not complete within requested timeout - context deadline exceeded"
)

func TestRequestThatTakesTooLong(t *testing.T) {
	o := newObjects(t)
	if err := o.EtcdLink().Set(netfault.Fault{Mode: netfault.Cut}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err := o.apply(t.Context(), "node-1", "not well", time.Second)
	took := time.Since(began)
	if text(err) != tooLongForTheClient {
		t.Errorf("%v, expected %s", err, tooLongForTheClient)
	}
	if took < time.Second || took > time.Second+slack {
		t.Errorf("it took %v, expected the second that the client gave", took)
	}
	if err := o.EtcdLink().Set(netfault.Fault{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := o.WaitReady(ctx, controlplane.Ready); err != nil {
		t.Fatal(err)
	}
}

// A watch tells of every change after a version, once and in order; one that begins too early is told to list again.
func TestWatchTellsOfEveryChange(t *testing.T) {
	o := newObjects(t)
	first, err := o.client.Resource(operators).Get(t.Context(), "cluster", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 6 {
		if err := o.apply(t.Context(), fmt.Sprintf("node-%d", i), "not well", 0); err != nil {
			t.Fatal(err)
		}
		now, err := o.client.Resource(operators).Get(t.Context(), "cluster", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, now.GetResourceVersion())
	}
	if got := o.watched(first.GetResourceVersion(), 6); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("told of %v, expected %v", got, want)
	}
	if got := o.watched(want[2], 3); strings.Join(got, " ") != strings.Join(want[3:], " ") {
		t.Errorf("from the third on told of %v, expected %v", got, want[3:])
	}
	o.tooEarly()
}

func (o *objects) watched(from string, count int) (versions []string) {
	o.t.Helper()
	w, err := o.client.Resource(operators).Watch(o.t.Context(), metav1.ListOptions{ResourceVersion: from})
	if err != nil {
		o.t.Fatal(err)
	}
	defer w.Stop()
	timer := time.NewTimer(20 * time.Second)
	defer timer.Stop()
	for len(versions) < count {
		select {
		case e := <-w.ResultChan():
			u, ok := e.Object.(*unstructured.Unstructured)
			if !ok || e.Type != watch.Modified {
				o.t.Fatalf("%s %T", e.Type, e.Object)
			}
			versions = append(versions, u.GetResourceVersion())
		case <-timer.C:
			return versions
		}
	}
	return versions
}

func (o *objects) tooEarly() {
	o.t.Helper()
	w, err := o.client.Resource(operators).Watch(o.t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	if err == nil {
		defer w.Stop()
		e := <-w.ResultChan()
		err = apierrors.FromObject(e.Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) || !strings.Contains(err.Error(), "too old resource version: 1 (") {
		o.t.Errorf("a watch from version 1: %v, expected 410 too old resource version", err)
	}
}

// cpu is the processor time of a process until now.
func cpu(t *testing.T, pid int) time.Duration {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Skip(err)
	}
	fields := strings.Fields(string(raw[strings.LastIndex(string(raw), ")")+2:]))
	var ticks int64
	for _, f := range fields[11:13] { // utime, stime
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// idling is which part of a processor a process needs without a request.
func idling(t *testing.T, pid int) float64 {
	t.Helper()
	const watched = 10 * time.Second
	began := cpu(t, pid)
	pass(t, time.Now().Add(watched))
	return float64(cpu(t, pid)-began) / float64(watched)
}

// An apply costs what the model says: so many times as much with many managers as with three, since processors differ. What the
// object holds besides hardly matters.
func TestApplyCosts(t *testing.T) {
	o := newObjects(t)
	pid, have := o.Process().PID(), 0
	var least, leastModel time.Duration
	idle := idling(t, pid)
	for _, c := range []struct {
		managers int
		detail   string
	}{{3, "short"}, {30, "short"}, {30, strings.Repeat("long ", 200)}, {30, "short"}, {100, "short"}} {
		for ; have < c.managers; have++ {
			if err := o.apply(t.Context(), fmt.Sprintf("node-%d", have), c.detail, 0); err != nil {
				t.Fatal(err)
			}
		}
		rounds := max(1, 120/c.managers)
		began, since := cpu(t, pid), time.Now()
		for i := range rounds * c.managers {
			if err := o.apply(t.Context(), fmt.Sprintf("node-%d", i%c.managers), c.detail, 0); err != nil {
				t.Fatal(err)
			}
		}
		other := time.Duration(idle * float64(time.Since(since)))
		each := (cpu(t, pid) - began - other) / time.Duration(rounds*c.managers)
		now, err := o.client.Resource(operators).Get(t.Context(), "cluster", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := json.Marshal(now.Object)
		model := sim.ApplyCost(c.managers)
		t.Logf("%d managers, %d bytes: %v of processor time each, and %v for other things; the model says %v", c.managers, len(raw), each, other, model)
		if least == 0 {
			least, leastModel = each, model
		}
		if got, want := float64(each)/float64(least), float64(model)/float64(leastModel); got < want/2 || got > want*2 {
			t.Errorf("%d managers, %d bytes: %.1f times what three cost, expected about %.1f", c.managers, len(raw), got, want)
		}
	}
}

// Writers that begin together keep each other from the object: all of 15 succeed, and of 200 many are told that it took too long.
// The work grows with the third power of their number: 100 take from 30 s on two idle cores, which is less than the time that a request has, to more
// than that.
func TestLockstep(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	o := newObjects(t)
	for _, c := range []struct {
		writers  int
		timeouts bool
	}{{15, false}, {200, true}} {
		errs := make([]error, c.writers)
		began := time.Now()
		var all sync.WaitGroup
		for i := range c.writers {
			all.Go(func() { errs[i] = o.apply(t.Context(), fmt.Sprintf("node-%d", i), "not well", 0) })
		}
		all.Wait()
		failed := 0
		for _, err := range errs {
			if err != nil {
				failed++
				if text(err) != tooLongForAnybody {
					t.Errorf("%v", err)
				}
			}
		}
		t.Logf("%d writers: %d failed, %v", c.writers, failed, time.Since(began))
		if c.timeouts != (failed > 0) {
			t.Errorf("%d of %d failed", failed, c.writers)
		}
	}
}
