package live

import (
	"context"
	"errors"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/poll"
)

// processes starts, stops, kills, pauses and resumes processes, pods and nodes.
type processes struct{ e *apiServer }

// processes carries out start … restart on every selected process at the same time.
func (ps *processes) processes(ctx context.Context, a *scenario.Process) error {
	if a.Target.Role == history.RoleNode || a.Target.Role == history.RolePod {
		return ps.states(ctx, a)
	}
	if a.Unlisted {
		return ps.startUnlisted(ctx, a.Target)
	}
	targets, err := ps.selectProcesses(ctx, a.Target)
	if err != nil {
		return err
	}
	if a.Target.Role == history.RoleEtcd {
		ps.e.controlPlane.MarkDirty(cluster.TaintedEtcd)
	}
	if a.Target.Role == history.RoleOperator {
		ps.e.pods.setRelease(a.Release)
	}
	if a.Target.Role == history.RoleAPIServer && a.Release != "" {
		if err := ps.setKubernetes(targets, a.Release); err != nil {
			return err
		}
	}
	ps.e.sut.vary(targets, a)
	return cluster.Together(targets, func(t cluster.Target) error { return ps.act(ctx, a, t) })
}

// setKubernetes makes API servers those of a release from their next start on.
func (ps *processes) setKubernetes(targets []cluster.Target, release string) error {
	ps.e.controlPlane.MarkDirty("an API server is of another release")
	var errs []error
	for _, t := range targets {
		u, ok := t.Unit.(cluster.Upgrader)
		if !ok {
			return errors.New(cluster.NoReleases)
		}
		errs = append(errs, u.SetRelease(release))
	}
	return errors.Join(errs...)
}

// startUnlisted starts plugins whose sockets no API server and no reporter is given.
func (ps *processes) startUnlisted(ctx context.Context, s scenario.Selector) error {
	nodes, err := ps.selectReachable(s.Node, false, "")
	if err != nil {
		return err
	}
	return cluster.Parallel(nodes, func(n *cluster.Node) error { return ps.e.encrypting.startPlugins(ctx, n, []string{s.KeyID}) })
}

// act does to one process what an action says. The end is recorded before it happens: a process that answers no more must not be taken for one that failed.
// A restart ends and starts it again, unless its successor begins beside it (overlap) or the kubelet starts it (container).
func (ps *processes) act(ctx context.Context, a *scenario.Process, t cluster.Target) error {
	if ends(a) {
		ps.recordStopping(t)
	}
	switch a.Do {
	case scenario.VerbStart:
		return ps.start(ctx, &t)
	case scenario.VerbStop:
		return t.Stop(ctx)
	case scenario.VerbKill:
		return t.Kill(ctx)
	case scenario.VerbPause:
		return t.Pause(ctx)
	case scenario.VerbSilence:
		return cluster.Silence(ctx, t.Unit)
	case scenario.VerbResume:
		return t.Resume(ctx)
	}
	if overlap := a.Overlap.Value(); overlap > 0 {
		return ps.succeed(ctx, t, overlap)
	}
	end := t.Stop
	switch a.With {
	case scenario.WithKill:
		end = t.Kill
	case scenario.WithContainer:
		return ps.e.Processes.RestartContainer(ctx, t, ps.e.changes.recordReady)
	}
	if err := end(ctx); err != nil {
		return err
	}
	return ps.start(ctx, &t)
}

// succeed starts another reporter or plugin beside one, and ends the older one after a time.
func (ps *processes) succeed(ctx context.Context, old cluster.Target, overlap time.Duration) error {
	if err := ps.startBeside(ctx, ps.e.Nodes.Get(old.Identity.Node), old.Identity); err != nil {
		return errors.Join(err, old.Stop(ctx))
	}
	_ = poll.Pause(ctx, overlap) // the older one ends in any case
	return old.Stop(context.WithoutCancel(ctx))
}

// startBeside starts another reporter, or a plugin at the same sockets.
func (ps *processes) startBeside(ctx context.Context, n *cluster.Node, of history.Process) error {
	if of.Role == history.RolePlugin {
		n.Plugin(of.KeyID).Forget()
		n.RemovePlugin(of.KeyID)
		return ps.e.encrypting.startPlugins(ctx, n, []string{of.KeyID})
	}
	if err := ps.e.sut.prepareReporter(ctx, n, cluster.Nowhere); err != nil {
		return err
	}
	return ps.start(ctx, n.Reporter())
}

func ends(a *scenario.Process) bool {
	return a.Do == scenario.VerbStop || a.Do == scenario.VerbKill || a.Do == scenario.VerbRestart
}

// recordStopping records that an API server is about to end. One that is asked to end drains for seconds, and refuses writes meanwhile. One that
// is killed serves nothing more, and on a busy machine it takes seconds until its exit can be observed.
func (ps *processes) recordStopping(t cluster.Target) {
	if t.Identity.Role != history.RoleAPIServer || !t.Status().Running() {
		return
	}
	p := t.Identity
	p.PID, p.State = t.Status().PID, history.ProcessStopping
	ps.e.record(&p)
}

// start starts a process unless it runs, waits until it answers, and records that it does.
func (ps *processes) start(ctx context.Context, t *cluster.Target) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.StartTimeout)
	defer cancel()
	if ps.e.pods != nil && t.Identity.Role == history.RoleReporter && len(ps.e.pods.sockets(t.Identity.Node)) == 0 {
		return nil // it was given no plugin yet: the operator starts it
	}
	already := t.Status().Running()
	if err := t.Start(ctx); err != nil {
		return err
	}
	if !already && t.Status().Running() {
		ps.e.changes.recordReady(t)
	}
	return nil
}
