package controlplane_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	aggregator "github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/ci/manifests"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	fake "github.com/kmsharness/kmsharness/fakeplugin/plugin"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/fakeplugin/server"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/record/audit"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/options"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

const (
	few, many = 3, 30
	// fast is a thirtieth of production's interval. With spread, many reporters write as often as few do with fast, three times as often as in production.
	fast, spread = time.Second, 10 * time.Second
	loadWindow   = 15 * time.Second
)

// reporters are those of many nodes at one API server, which has the CRDs, permissions, flow schemas and admission policy of a cluster. Each has an
// identity and a plugin of its own.
type reporters struct {
	testing.TB
	server  *controlplane.APIServer
	http    *http.Client
	crs     dynamic.ResourceInterface
	options []options.Options // one for each reporter
}

func newReporters(t testing.TB) *reporters {
	t.Helper()
	w := newWorld(t, nil, specs(1)...)
	w.start(t, controlplane.Ready)
	r := &reporters{TB: t, server: w.Servers()[0]}
	admin, err := w.AdminConfig(r.server.URL)
	r.must(err)
	r.http, err = rest.HTTPClientFor(admin)
	r.must(err)
	t.Cleanup(r.http.CloseIdleConnections)
	client, err := dynamic.NewForConfigAndClient(admin, r.http)
	r.must(err)
	r.crs = client.Resource(kubeAPIServers())
	r.must(controlplane.Install(t.Context(), []*rest.Config{admin}, r.objects()...))
	r.awaitPolicy(w)
	dir := t.TempDir()
	for i := range many {
		r.options = append(r.options, r.flags(w, dir, i+1))
	}
	return r
}

func kubeAPIServers() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: "kubeapiservers"}
}

func (r *reporters) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// objects are what a cluster has before its reporters start.
func (r *reporters) objects() (all []*unstructured.Unstructured) {
	definitions, err := crds.List(crds.TechPreview)
	r.must(err)
	for _, d := range definitions {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
		r.must(err)
		all = append(all, &unstructured.Unstructured{Object: object})
	}
	others, err := manifests.Objects(manifests.Options{})
	r.must(err)
	return slices.Concat(all, others, []*unstructured.Unstructured{newCR()})
}

func newCR() *unstructured.Unstructured {
	cr := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operator.openshift.io/v1", "kind": "KubeAPIServer", "spec": map[string]any{"managementState": "Managed"}}}
	cr.SetName(aggregator.OperatorObject)
	return cr
}

// recreate leaves a CR without reports.
func (r *reporters) recreate() error {
	if err := r.crs.Delete(r.Context(), aggregator.OperatorObject, metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err := r.crs.Create(r.Context(), newCR(), metav1.CreateOptions{})
	return err
}

// awaitPolicy returns when a reporter may not write the entry of another one: an API server loads a policy some time after it was created, and its cost
// is part of what is measured.
func (r *reporters) awaitPolicy(w world) {
	config, err := w.RESTConfig(contract.ReporterIdentity("cp-1"), []string{contract.ReporterGroup}, r.server.URL)
	r.must(err)
	client, err := dynamic.NewForConfig(config)
	r.must(err)
	entry := []byte(`{"apiVersion":"operator.openshift.io/v1","kind":"KubeAPIServer","status":{"conditions":[{"type":"` + contract.ConditionType("cp-2") +
		`","status":"True","reason":"AsExpected","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	var last error
	err = wait.PollUntilContextTimeout(r.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, last = client.Resource(kubeAPIServers()).Patch(ctx, aggregator.OperatorObject, types.ApplyPatchType, entry,
			metav1.PatchOptions{FieldManager: "policy", Force: ptr.To(true), DryRun: []string{metav1.DryRunAll}}, "status")
		return last != nil && strings.Contains(last.Error(), "writes only its own condition"), nil
	})
	if err != nil {
		r.Fatalf("the admission policy is not in force: %v; the last answer: %v", err, last)
	}
}

// flags starts the plugin of one more node and returns the options of its reporter, which come from the flags of the program.
func (r *reporters) flags(w world, dir string, number int) options.Options {
	node, keyID := fmt.Sprintf("cp-%d", number), strconv.Itoa(number)
	socket := "unix://" + filepath.Join(dir, "kms-"+keyID+".sock")
	r.servePlugin(node, keyID, socket)
	kubeconfig, err := w.Kubeconfig(contract.ReporterIdentity(node), []string{contract.ReporterGroup}, r.server.URL)
	r.must(err)
	file := filepath.Join(dir, node+".kubeconfig")
	r.must(os.WriteFile(file, kubeconfig, 0o600))
	o, errs := options.Parse([]string{"--node-name=" + node, "--kms-sockets=" + socket, "--kubeconfig=" + file}, io.Discard)
	r.must(errors.Join(errs...))
	return o
}

func timing(interval time.Duration) contract.Timing {
	t := contract.DefaultTiming()
	t.Interval, t.Jitter, t.ProbeTimeout, t.WriteTimeout = interval, interval/10, interval/2, interval
	return t
}

func (r *reporters) servePlugin(node, keyID, socket string) {
	at, err := endpoint.ParseUnix(socket)
	r.must(err)
	kms, err := remotekms.New(remotekms.Options{})
	r.must(err)
	p := fake.New(fake.Options{Name: node + "/" + keyID, Key: "key-" + keyID, Service: kms})
	r.must(p.Poll(r.Context()))
	s := server.New(server.Options{Listen: at, Node: node, KeyID: keyID, Plugin: &fake.Service{Plugin: p}, Program: fault.NewProgram(clock.RealClock{}, 1)})
	r.must(s.Start())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	r.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			r.Error(err)
		}
	})
}

// load is what some reporters did at the API server in a window, and what it cost there.
type load struct {
	reporters        int
	interval, window time.Duration
	requests, writes int // all requests of the reporters, and writes that took effect
	conflicts        int // writes that the API server answered with 409
	refused          int // all other requests that it did not carry out
	refusal          string
	notFresh         int // reports that were missing or not fresh, at a read of the CR in each interval
	// repeated is how often the API server itself tried a write again, because another one came first: Server-Side Apply hides that from its clients.
	repeated    int
	median, p99 time.Duration // from the receipt of a write to the end of its answer, in the audit log
	cpu         time.Duration // of the process kube-apiserver
}

// problems are what Server-Side Apply by one field manager for each reporter does not have. Durations and CPU have no bound: machines differ.
func (l load) problems() (out []string) {
	if l.conflicts > 0 {
		out = append(out, fmt.Sprintf("%d conflicts", l.conflicts))
	}
	// One more for the first tick, and one for the read before it.
	if most := l.reporters * (int(l.window/timing(l.interval).CadenceMin()) + 2); l.requests > most {
		out = append(out, fmt.Sprintf("%d requests, at most %d are in the intervals", l.requests, most))
	}
	if l.interval == fast && l.reporters == many {
		return out // more than a busy machine can do, so that writes run into their deadlines
	}
	if l.refused > 0 {
		out = append(out, fmt.Sprintf("%d requests refused, such as: %s", l.refused, l.refusal))
	}
	if l.notFresh > 0 || l.writes == 0 {
		out = append(out, fmt.Sprintf("%d times a report was missing or not fresh, with %d writes", l.notFresh, l.writes))
	}
	return out
}

// run starts n reporters at the same time, as a power cycle of all nodes does, on a CR without reports, and measures from then on. A publisher takes the place
// of the correct one.
func (r *reporters) run(n int, interval, window time.Duration, wrong func(*rest.Config) (reporter.Publisher, error)) load {
	r.Helper()
	l, err := r.measure(n, interval, window, wrong)
	if err != nil {
		r.Fatalf("%d reporters: %v", n, err)
	}
	return l
}

func (r *reporters) measure(n int, interval, window time.Duration, wrong func(*rest.Config) (reporter.Publisher, error)) (l load, err error) {
	l = load{reporters: n, interval: interval}
	if err := r.recreate(); err != nil {
		return l, err
	}
	before, err := r.etcdUpdates(r.Context())
	if err != nil {
		return l, err
	}
	idle, err := r.cpu()
	if err != nil {
		return l, err
	}
	begin := time.Now()
	if l.notFresh, err = r.during(n, interval, window, wrong); err != nil {
		return l, err
	}
	end := time.Now()
	used, err := r.cpu()
	if err != nil {
		return l, err
	}
	l.window, l.cpu = end.Sub(begin), used-idle
	after, err := r.etcdUpdates(r.Context())
	if err != nil {
		return l, err
	}
	err = r.audited(&l, begin)
	l.repeated = max(0, after-before-l.writes)
	return l, err
}

// during runs n reporters until a window has passed since all reports were fresh, or two intervals since the start. It returns how often one was missing or
// not fresh in the window. When it returns, the reporters have ended.
func (r *reporters) during(n int, interval, window time.Duration, wrong func(*rest.Config) (reporter.Publisher, error)) (notFresh int, err error) {
	parent, stop := context.WithCancel(r.Context())
	group, ctx := errgroup.WithContext(parent)
	defer func() {
		stop()
		err = cmp.Or(group.Wait(), err)
	}()
	for _, o := range r.options[:n] {
		o.Timing = timing(interval)
		var changes []reporter.Change
		if wrong != nil {
			config, err := reporter.Connection(host.Host{}, o)
			if err != nil {
				return 0, err
			}
			publisher, err := wrong(config)
			if err != nil {
				return 0, err
			}
			changes = append(changes, func(l *reporter.Loop) { l.Publisher = publisher })
		}
		group.Go(func() error { return reporter.Run(ctx, host.Host{}, o, slog.New(slog.DiscardHandler), changes...) })
	}
	if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 2*interval, true, func(ctx context.Context) (bool, error) {
		missing, err := r.notFresh(ctx, n, interval)
		return missing == 0, err
	}); err != nil && (ctx.Err() != nil || !wait.Interrupted(err) && !errors.Is(err, context.DeadlineExceeded)) {
		return 0, fmt.Errorf("wait for the first reports: %w", err)
	}
	return r.watch(ctx, n, interval, window)
}

// watch reads the CR once in each interval, and returns how often a report was missing or not fresh.
func (r *reporters) watch(ctx context.Context, n int, interval, window time.Duration) (notFresh int, err error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	end := time.NewTimer(window)
	defer end.Stop()
	for {
		select {
		case <-tick.C:
			more, err := r.notFresh(ctx, n, interval)
			if err != nil {
				return notFresh, err
			}
			notFresh += more
		case <-end.C:
			return notFresh, nil
		case <-ctx.Done():
			return notFresh, ctx.Err()
		}
	}
}

// notFresh is how many of n reports are not on the CR, or not fresh.
func (r *reporters) notFresh(ctx context.Context, n int, interval time.Duration) (count int, err error) {
	operator, err := aggregator.OperatorByName(string(publish.KubeAPIServer))
	if err != nil {
		return 0, err
	}
	cr, err := r.crs.Get(ctx, aggregator.OperatorObject, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	reports := new(aggregator.Reader).Read(cr.Object, operator).Reports
	for _, o := range r.options[:n] {
		report := contract.Report{Node: o.Node, Entries: reports[o.Node].Entries}
		if contract.FreshnessAt(time.Now(), report.Oldest(), interval) != contract.Fresh {
			count++
		}
	}
	return count, nil
}

// audited reads what reporters asked for since an instant from the audit log.
func (r *reporters) audited(l *load, begin time.Time) error {
	text, err := os.ReadFile(r.server.AuditLog)
	if err != nil {
		return err
	}
	var took []time.Duration
	for line := range bytes.Lines(text[:bytes.LastIndexByte(text, '\n')+1]) {
		request, ended, err := audit.Decode(r.server.Name, line)
		if err != nil {
			return err
		}
		if !ended || request.Reporter() == "" || request.Received.Before(begin) {
			continue
		}
		l.requests++
		switch {
		case request.Verb == "patch" && request.Code == http.StatusOK:
			took = append(took, request.Completed.Sub(request.Received))
		case request.Code == http.StatusConflict:
			l.conflicts++
		case request.Code != http.StatusOK:
			l.refused, l.refusal = l.refused+1, fmt.Sprintf("%d %s", request.Code, request.Message)
		}
	}
	l.writes = len(took)
	if slices.Sort(took); len(took) > 0 {
		l.median, l.p99 = took[(len(took)-1)/2], took[int(math.Ceil(0.99*float64(len(took))))-1]
	}
	return nil
}

// etcdUpdates is how many transactions the API server sent to etcd to change a CR, those that another write came before included.
func (r *reporters) etcdUpdates(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.server.URL+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := r.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`(?m)^etcd_requests_total\{.*operation="update".*kubeapiservers.*\} (\S+)$`).FindSubmatch(text)
	if found == nil {
		return 0, nil // before the first write
	}
	count, err := strconv.ParseFloat(string(found[1]), 64)
	return int(count), err
}

// clockTick is the unit of the times in /proc/PID/stat, which is the same on every architecture that Go has.
const clockTick = time.Second / 100

// cpu is how much of it the API server has used, in user and system mode.
func (r *reporters) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.server.Process().PID()))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // from the third on: the second is a name in brackets
	var used time.Duration
	for _, field := range fields[11:13] {
		ticks, err := strconv.Atoi(string(field))
		if err != nil {
			return 0, fmt.Errorf("CPU of the API server: %w", err)
		}
		used += time.Duration(ticks) * clockTick
	}
	return used, nil
}

// perWrite is the CPU that a write costs, without what the idle API server uses.
func (l load) perWrite(idle load) float64 {
	own := l.cpu.Seconds() - idle.cpu.Seconds()*l.window.Seconds()/idle.window.Seconds()
	return own * 1000 / float64(max(1, l.writes))
}

func table(idle load, all ...load) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "REPORTERS\tINTERVAL\tREQUESTS/S\tCONFLICTS\tREFUSED\tNOT FRESH\tREPEATED INSIDE\tMEDIAN\t99 %\tCPU OF A CORE\tCPU/WRITE")
	for _, l := range append([]load{idle}, all...) {
		fmt.Fprintf(w, "%d\t%v\t%.1f\t%d\t%d\t%d\t%d\t%v\t%v\t%.1f %%\t%.1f ms\n", l.reporters, l.interval, float64(l.requests)/l.window.Seconds(), l.conflicts, l.refused, l.notFresh,
			l.repeated, l.median.Round(time.Microsecond), l.p99.Round(time.Microsecond), 100*l.cpu.Seconds()/l.window.Seconds(), l.perWrite(idle))
	}
	w.Flush()
	for _, l := range all {
		if l.refused > 0 {
			fmt.Fprintf(&text, "refused to %d with an interval of %v, such as: %s\n", l.reporters, l.interval, l.refusal)
		}
	}
	return text.String()
}

// merging is a publisher that reads the CR, changes its condition and merges all conditions back, if nobody else has written since. It does not try again.
type merging struct{ crs dynamic.ResourceInterface }

func mergesWithoutARetry(config *rest.Config) (reporter.Publisher, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return merging{client.Resource(kubeAPIServers())}, nil
}

func (m merging) Apply(ctx context.Context, write core.Action) error {
	ctx, cancel := context.WithDeadline(ctx, write.Until)
	defer cancel()
	cr, err := m.crs.Get(ctx, aggregator.OperatorObject, metav1.GetOptions{})
	if err != nil {
		return err
	}
	conditions, _, err := unstructured.NestedSlice(cr.Object, "status", "conditions")
	if err != nil {
		return err
	}
	body, err := publish.ConditionsBody(publish.KubeAPIServer, write.Report, time.Now())
	if err != nil {
		return err
	}
	var own struct {
		Status struct{ Conditions []map[string]any }
	}
	if err := json.Unmarshal(body, &own); err != nil {
		return err
	}
	conditions = slices.DeleteFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == contract.ConditionType(write.Report.Node) })
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": cr.GetResourceVersion()},
		"status": map[string]any{"conditions": append(conditions, own.Status.Conditions[0])}})
	if err != nil {
		return err
	}
	_, err = m.crs.Patch(ctx, aggregator.OperatorObject, types.MergePatchType, text, metav1.PatchOptions{}, "status")
	return err
}

// sharing is a publisher under the field manager of all reporters, so that an apply removes what the others applied.
type sharing struct{ *publish.Applier }

func oneFieldManager(config *rest.Config) (reporter.Publisher, error) {
	applier, err := publish.NewApplier(config, publish.KubeAPIServer)
	return sharing{applier}, err
}

func (s sharing) Apply(ctx context.Context, write core.Action) error {
	ctx, cancel := context.WithDeadline(ctx, write.Until)
	defer cancel()
	body, err := publish.ConditionsBody(publish.KubeAPIServer, write.Report, time.Now())
	if err != nil {
		return err
	}
	return s.Applier.Apply(ctx, strings.TrimSuffix(contract.ReporterFieldManagerPrefix, "-"), body)
}

// measureAll measures an idle API server, few reporters, as many writes by many reporters, and ten times as many.
func (r *reporters) measureAll() (idle load, loads []load) {
	idle = r.run(0, fast, 5*time.Second, nil)
	return idle, []load{r.run(few, fast, loadWindow, nil), r.run(many, spread, loadWindow, nil), r.run(many, fast, loadWindow, nil)}
}

// Reporters of 30 nodes have no conflicts at one API server and lose no report (S0-21). Those that write in another way do.
func TestReporters(t *testing.T) {
	if testing.Short() {
		t.Skip("it boots a control plane: make nightly")
	}
	r := newReporters(t)
	idle, loads := r.measureAll()
	t.Logf("load at one API server:\n%s", table(idle, loads...))
	for _, l := range loads {
		for _, p := range l.problems() {
			t.Errorf("%d reporters with an interval of %v: %s", l.reporters, l.interval, p)
		}
	}
	for _, wrong := range []struct {
		name    string
		publish func(*rest.Config) (reporter.Publisher, error)
		caught  string // by which of the problems
	}{
		{"merges-without-a-retry", mergesWithoutARetry, "conflicts"},
		{"one-field-manager", oneFieldManager, "missing or not fresh"},
	} {
		l := r.run(many, spread, loadWindow, wrong.publish)
		problems := l.problems()
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, wrong.caught) }) {
			t.Errorf("%s is not caught by %s: %q", wrong.name, wrong.caught, problems)
		}
		t.Logf("%s: %q\n%s", wrong.name, problems, table(idle, l))
	}
}

// BenchmarkReporters measures 30 reporters against 3 at the same API server that write as often together. The ratios are of the time of a write, and of the
// CPU that a write costs the API server.
func BenchmarkReporters(b *testing.B) {
	r := newReporters(b)
	for b.Loop() {
		idle, loads := r.measureAll()
		b.Logf("\n%s", table(idle, loads...))
		three, thirty := loads[0], loads[1]
		b.ReportMetric(thirty.median.Seconds()*1000, "ms/median")
		b.ReportMetric(thirty.p99.Seconds()*1000, "ms/p99")
		b.ReportMetric(thirty.perWrite(idle), "cpu-ms/write")
		b.ReportMetric(float64(thirty.conflicts), "conflicts")
		b.ReportMetric(thirty.median.Seconds()/three.median.Seconds(), "median-ratio")
		b.ReportMetric(thirty.p99.Seconds()/three.p99.Seconds(), "p99-ratio")
		b.ReportMetric(thirty.perWrite(idle)/three.perWrite(idle), "cpu-ratio")
	}
	b.ReportMetric(0, "ns/op") // the windows are as long as they are
}
