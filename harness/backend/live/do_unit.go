package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/tail"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Why the processes of a node cannot be told anything: what its node or its pod was told last.
const (
	unavailableKilled  = "has no power: start role node first"
	unavailablePaused  = "is paused or silent: resume role node first"
	unavailableStopped = "is without its API server's pod: start role pod first"
)

// states carries out start … restart of nodes, or of the API servers' pods on them, each group as one unit.
func (ps *processes) states(ctx context.Context, a *scenario.Process) error {
	ps.e.changes.turn.Lock()
	defer ps.e.changes.turn.Unlock()
	nodes, err := ps.selectNodes(a.Target.Node, false)
	if err != nil {
		return err
	}
	role := a.Target.Role
	if a.Target.Pod == scenario.PodSecond {
		return cluster.Parallel(nodes, func(n *cluster.Node) error { return ps.second(ctx, a.Do, n) })
	}
	if role == history.RolePod {
		if err := ps.reachable(nodes, unavailableStopped); err != nil {
			return err
		}
	}
	if ends(a) {
		for _, n := range nodes {
			ps.recordStopping(n.ServerTarget())
		}
	}
	return ps.actOnUnit(ctx, a, ps.e.Processes.NodeUnit(role, nodes, ps.e.changes.recordReady), func(unavailable string, states ...string) {
		for _, n := range nodes {
			ps.setUnavailable(cluster.OnNode{Role: role, Node: n.Name}, unavailable)
			for _, state := range states {
				ps.e.record(&history.Process{Role: role, Node: n.Name, State: state})
			}
		}
	})
}

// second starts or stops the second pod of an aggregated API server on a node.
func (ps *processes) second(ctx context.Context, do scenario.Verb, first *cluster.Node) error {
	pods, ok := ps.e.Processes.(cluster.PodAdder)
	switch n := first.SecondPod(); {
	case !ok:
		return errors.New(cluster.NoSecondPods)
	case do == scenario.VerbStart && n == nil:
		ctx, cancel := context.WithTimeout(ctx, cluster.StartTimeout)
		defer cancel()
		n, err := pods.AddPod(ctx, first, ps.e.encrypting.current())
		if err == nil {
			err = ps.e.recorder.FollowPod(n, tail.FromStart)
		}
		if err == nil {
			err = ps.e.sut.prepareReporter(ctx, n, cluster.Nowhere)
		}
		if err != nil {
			return fmt.Errorf("second pod on %s: %w", first.Name, err)
		}
		first.SetSecondPod(n)
		return ps.start(ctx, n.Reporter())
	case do == scenario.VerbStop && n != nil:
		first.SetSecondPod(nil)
		return errors.Join(n.Reporter().Stop(ctx), pods.RemovePod(ctx, n))
	}
	return nil
}

// actOnUnit tells note what has become of the nodes. Of an end that failed too: whatever is left is started later.
func (ps *processes) actOnUnit(ctx context.Context, a *scenario.Process, u cluster.Unit, note func(unavailable string, states ...string)) error {
	unavailable := unavailableKilled
	if a.Target.Role == history.RolePod {
		unavailable = unavailableStopped
	}
	end, state := u.Stop, history.ProcessStopped
	if a.Do == scenario.VerbKill || a.With == scenario.WithKill {
		end, state = u.Kill, history.ProcessKilled
	}
	switch a.Do {
	case scenario.VerbPause:
		err := u.Pause(ctx)
		note(unavailablePaused, history.ProcessPaused)
		return err
	case scenario.VerbSilence:
		err := cluster.Silence(ctx, u)
		note(unavailablePaused, history.ProcessSilenced)
		return err
	case scenario.VerbResume:
		if err := u.Resume(ctx); err != nil {
			return err
		}
		note("", history.ProcessResumed)
		return nil
	case scenario.VerbStop, scenario.VerbKill, scenario.VerbRestart:
		err := end(ctx)
		note(unavailable, state)
		if err != nil || a.Do != scenario.VerbRestart {
			return err
		}
	}
	began := time.Now()
	if err := u.Start(ctx); err != nil {
		return fmt.Errorf("start after %v: %w", time.Since(began).Round(time.Second), err)
	}
	note("", history.ProcessStarted, history.ProcessReady)
	return nil
}

func (ps *processes) setUnavailable(k cluster.OnNode, why string) {
	ps.e.mu.Lock()
	defer ps.e.mu.Unlock()
	if why == "" {
		delete(ps.e.unavailable, k)
		return
	}
	ps.e.unavailable[k] = why
}

// reachable is an error if the processes of a node cannot be told anything, unless it is for the one reason that does not matter.
func (ps *processes) reachable(nodes []*cluster.Node, except string) error {
	ps.e.mu.Lock()
	defer ps.e.mu.Unlock()
	var errs []error
	for _, n := range nodes {
		for _, role := range []string{history.RoleNode, history.RolePod} {
			if why := ps.e.unavailable[cluster.OnNode{Role: role, Node: n.Name}]; why != "" && why != except {
				errs = append(errs, fmt.Errorf("node %s %s", n.Name, why))
			}
		}
	}
	return errors.Join(errs...)
}
