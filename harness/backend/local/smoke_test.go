package local

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/assets/assetstest"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

// smokeTimeout bounds the whole test on a busy machine; it takes about 20 s.
const smokeTimeout = 3 * time.Minute

// world is an environment and its history as it grows.
type world struct {
	t      *testing.T
	ctx    context.Context
	env    backend.Environment
	events chan history.Event
	log    *history.Log
}

// newWorld prepares an environment.
func newWorld(t *testing.T, b *Backend, ctx context.Context, s *scenario.Scenario) *world {
	t.Helper()
	w := &world{t: t, ctx: ctx, log: history.NewLog(nil), events: make(chan history.Event, 100_000)}
	env, err := b.Prepare(ctx, backend.Spec{Scenario: s, Log: w.log, OutDir: t.TempDir(), Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	w.env = env
	heading := env.RunMetadata()
	w.log.Record(time.Now(), "engine", &heading)
	t.Cleanup(w.log.Subscribe(func(e history.Event) { w.events <- e }))
	return w
}

// newBackend skips the test where the binaries are not at hand.
func newBackend(t *testing.T, opts Options) *Backend {
	t.Helper()
	if testing.Short() {
		t.Skip("it boots a control plane")
	}
	opts.Assets = assets.Options{LocalOnly: true}
	assetstest.Find(t)
	b, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (w *world) do(a scenario.Action) {
	w.t.Helper()
	if err := w.env.Do(w.ctx, a); err != nil {
		w.t.Fatal(err)
	}
}

// degraded waits for a state of the rollup that some later event shows.
func (w *world) degraded(status, reason string) {
	w.t.Helper()
	w.await("KMSPluginsDegraded "+status+" "+reason, func(e history.Event) bool {
		return e.Object != nil && slices.ContainsFunc(e.Object.Conditions, func(c *history.Condition) bool {
			return c.Type == contract.ConditionDegraded && c.Status == status && c.Reason == reason
		})
	})
}

func (w *world) await(what string, found func(history.Event) bool) {
	w.t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for {
		select {
		case e := <-w.events:
			if found(e) {
				return
			}
		case <-deadline.C:
			w.t.Fatalf("%s was not seen within 30 s", what)
		}
	}
}

func (w *world) has(what string, found func(history.Event) bool) {
	w.t.Helper()
	if !slices.ContainsFunc(w.log.Events(), found) {
		w.t.Errorf("the history has no %s", what)
	}
}

// pids are the processes of the environment that the history has named.
func (w *world) pids() []int {
	var all []int
	for _, e := range w.log.Events() {
		if e.Process != nil && e.Process.PID != 0 {
			all = append(all, e.Process.PID)
		}
	}
	return all
}

func TestFaultsShowAndGo(t *testing.T) {
	b := newBackend(t, Options{})
	ctx, cancel := context.WithTimeout(context.Background(), smokeTimeout)
	defer cancel()
	plugin := scenario.Selector{Node: "cp-1"}
	reporter := scenario.Selector{Role: history.RoleReporter, Node: "cp-1"}
	s := &scenario.Scenario{Name: "smoke", Topology: scenario.Topology{ControlPlanes: 1, KeyIDs: []string{"2", "1"}}}
	w := newWorld(t, b, ctx, s)
	w.degraded("False", contract.ReasonAsExpected)
	w.closed()
	w.do(&scenario.Inject{Plugin: plugin, Fault: "hang", Method: "Status"})
	w.degraded("True", contract.ReasonPluginUnreachable)
	w.do(&scenario.Release{Plugin: plugin})
	w.degraded("False", contract.ReasonAsExpected)
	w.do(&scenario.Process{Do: scenario.VerbKill, Target: reporter})
	w.degraded("Unknown", contract.ReasonReportStale)
	w.do(&scenario.Process{Do: scenario.VerbStart, Target: reporter})
	w.degraded("False", contract.ReasonAsExpected)
	w.do(&scenario.Data{Op: "write", Count: 2, Size: 100})
	w.finish()
	w.recorded()
	first := w.pids()

	// The same control plane serves the next scenario, and nothing of the first is left in it.
	again := newWorld(t, b, ctx, s)
	again.degraded("False", contract.ReasonAsExpected)
	again.finish()
	if !slices.ContainsFunc(again.pids(), func(pid int) bool { return slices.Contains(first, pid) }) {
		t.Error("the control plane was not used again")
	}
	if err := b.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for _, pid := range append(first, again.pids()...) {
		environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
		if err == nil && bytes.Contains(environ, []byte(process.EnvRunDir+"=")) {
			t.Errorf("process %d is left", pid)
		}
	}
}

// closed checks that no other user may connect to a socket of plugins, of their control APIs or of the remote KMS, nor reach one.
func (w *world) closed() {
	w.t.Helper()
	dir := w.env.(*live.Environment).ControlPlane().Traits.Dir
	found, open := openSockets(w.t, dir)
	if len(found) < 5 || len(open) > 0 { // two plugins with their control APIs, and the remote KMS
		w.t.Errorf("of the sockets %v others may reach %v, expected none", found, open)
	}
	i := slices.IndexFunc(found, func(path string) bool { return strings.HasPrefix(filepath.Base(path), "ctl-") })
	if i < 0 {
		w.t.Fatalf("there is no control API among %v", found)
	}
	w.chmod(found[i], 0o666)
	defer w.chmod(found[i], 0o600)
	if _, open := openSockets(w.t, dir); !slices.Equal(open, found[i:i+1]) {
		w.t.Errorf("a control API that is open to everybody: found %v", open)
	}
}

func (w *world) chmod(path string, mode os.FileMode) {
	w.t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		w.t.Fatal(err)
	}
}

// openSockets finds the sockets below a folder, and those of them that are for more than one user, as the folder itself may be.
func openSockets(t *testing.T, dir string) (found, open []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.Type() != os.ModeSocket && path != dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if path != dir {
			found = append(found, path)
		}
		if info.Mode().Perm()&0o077 != 0 {
			open = append(open, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, open
}

func (w *world) finish() {
	w.t.Helper()
	if err := w.env.Finish(w.ctx); err != nil {
		w.t.Error(err)
	}
	if err := w.env.Release(w.ctx, false); err != nil {
		w.t.Error(err)
	}
}

// recorded looks for one event of every recorder.
func (w *world) recorded() {
	w.t.Helper()
	w.has("Status call", func(e history.Event) bool { return e.Call != nil && e.Call.Method == "Status" && e.Call.Node == "cp-1" })
	w.has("write of the reporter", func(e history.Event) bool {
		r := e.Request
		return r != nil && r.User == contract.ReporterIdentity("cp-1") && r.Code == 200 && r.ResourceVersion != "" && len(r.Body) > 0
	})
	w.has("write of the aggregator", func(e history.Event) bool {
		return e.Request != nil && e.Request.User == contract.AggregatorIdentity && e.Request.FieldManager == contract.AggregatorFieldManager
	})
	w.has("owner of a condition", func(e history.Event) bool {
		return e.Object != nil && slices.Contains(e.Object.Owners["condition/"+contract.ConditionType("cp-1")], contract.FieldManager("cp-1"))
	})
	w.has("envelope of the API server", func(e history.Event) bool { return e.Envelope != nil && e.Envelope.Object != "" })
	w.has("encrypted object in etcd", func(e history.Event) bool {
		return e.Data != nil && e.Data.Op == history.DataRaw && e.Data.OK && e.Data.Provider == "kms-2" && e.Data.Want == "kms-2" && e.Data.KEKID != ""
	})
	w.has("object read back", func(e history.Event) bool { return e.Data != nil && e.Data.Op == history.DataRead && e.Data.OK })
	w.has("killed reporter", func(e history.Event) bool {
		return e.Process != nil && e.Process.Role == history.RoleReporter && e.Process.State == history.ProcessKilled
	})
}

func TestColdStartBringsEverythingUp(t *testing.T) {
	b := newBackend(t, Options{System: undertest.System{Reporter: undertest.Reporter{MountSockets: os.Geteuid() == 0}}})
	ctx, cancel := context.WithTimeout(context.Background(), smokeTimeout)
	defer cancel()
	s := &scenario.Scenario{Name: "cold", Contract: "healthreports", Topology: scenario.Topology{ControlPlanes: 1, Start: scenario.StartStopped}}
	w := newWorld(t, b, ctx, s)
	for _, role := range []string{history.RolePlugin, history.RoleAPIServer, history.RoleReporter, history.RoleAggregator} {
		w.do(&scenario.Process{Do: scenario.VerbStart, Target: scenario.Selector{Role: role}})
	}
	w.degraded("False", contract.ReasonAsExpected)
	w.do(&scenario.Node{Add: "cp-2"})
	w.await("typed report of cp-2", func(e history.Event) bool {
		return e.Object != nil && slices.ContainsFunc(e.Object.HealthReports, func(r *contract.TypedReport) bool { return r.NodeName == "cp-2" && r.Status == "Healthy" })
	})
	if got := w.env.Nodes(); !slices.Equal(got, []string{"cp-1", "cp-2"}) {
		t.Errorf("nodes %v", got)
	}
	w.do(&scenario.Encryption{Type: "identity"})
	w.await("no report", func(e history.Event) bool {
		return e.Object != nil && e.Object.Resource == "kubeapiservers.operator.openshift.io" && len(e.Object.HealthReports) == 0
	})
	w.finish()
}

// TestPowerOfNodes: the last node takes etcd with it, and the first one brings it back; what was down stays down.
func TestPowerOfNodes(t *testing.T) {
	b := newBackend(t, Options{})
	ctx, cancel := context.WithTimeout(context.Background(), smokeTimeout)
	defer cancel()
	s := &scenario.Scenario{Name: "power", Topology: scenario.Topology{ControlPlanes: 2}}
	w := newWorld(t, b, ctx, s)
	w.degraded("False", contract.ReasonAsExpected)
	on := func(verb scenario.Verb, role, node string) {
		w.do(&scenario.Process{Do: verb, Target: scenario.Selector{Role: role, Node: node}})
	}
	on(scenario.VerbStop, history.RoleReporter, "cp-2")
	on(scenario.VerbKill, history.RoleNode, "cp-2")
	w.lives("etcd 1, apiserver 1, plugin 1, reporter 1")
	if err := w.env.Do(ctx, &scenario.Process{Do: scenario.VerbStart, Target: scenario.Selector{Role: history.RolePlugin, Node: "cp-2"}}); err == nil {
		t.Error("a process of a node without power was started")
	}
	on(scenario.VerbKill, history.RoleNode, "cp-1")
	w.lives("etcd 0, apiserver 0, plugin 0, reporter 0")
	on(scenario.VerbStart, history.RoleNode, "")
	w.lives("etcd 1, apiserver 2, plugin 2, reporter 1")
	on(scenario.VerbPause, history.RoleNode, "cp-1")
	on(scenario.VerbResume, history.RoleNode, "cp-1")
	on(scenario.VerbStop, history.RolePod, "cp-1")
	w.lives("etcd 1, apiserver 1, plugin 1, reporter 0")
	on(scenario.VerbStart, history.RolePod, "cp-1")
	w.do(&scenario.Process{Do: scenario.VerbRestart, Target: scenario.Selector{Role: history.RolePlugin, Node: "cp-1"}, With: scenario.WithContainer})
	on(scenario.VerbStart, history.RoleReporter, "cp-2")
	w.lives("etcd 1, apiserver 2, plugin 2, reporter 2")
	w.degraded("False", contract.ReasonAsExpected)
	w.finish()
}

// lives compares the processes that live, by the last that the history says of each.
func (w *world) lives(want string) {
	w.t.Helper()
	last := map[string]string{}
	for _, e := range w.log.Events() {
		if e.Process != nil {
			last[e.Process.Role+" "+e.Process.Node+"/"+e.Process.KeyID] = e.Process.State
		}
	}
	var all []string
	for _, role := range []string{history.RoleEtcd, history.RoleAPIServer, history.RolePlugin, history.RoleReporter} {
		n := 0
		for name, state := range last {
			if strings.HasPrefix(name, role+" ") && slices.Contains([]string{history.ProcessStarted, history.ProcessReady, history.ProcessResumed}, state) {
				n++
			}
		}
		all = append(all, role+" "+strconv.Itoa(n))
	}
	if got := strings.Join(all, ", "); got != want {
		w.t.Errorf("%s live, want %s", got, want)
	}
}
