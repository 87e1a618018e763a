package kind

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/hold"
)

// isBack returns when what ran on a node before it lost its power runs again.
func (p *plane) isBack(ctx context.Context, n *live.Node, ready func(*live.Target)) error {
	member := func(ctx context.Context) error {
		return p.askEtcd(ctx, n.Name, "/v3/maintenance/status", struct{}{}, nil)
	}
	if err := until(ctx, readyPoll, "wait for its etcd member", member); err != nil {
		return err
	}
	told := history.Process{Role: history.RoleEtcd, Node: n.Name}
	for _, told.State = range []string{history.ProcessStarted, history.ProcessReady} {
		p.Tell(time.Now(), told)
	}
	return p.runsAgain(ctx, n, p.takeLost(history.RoleNode, n.Name), ready)
}

// runsAgain returns when the units run in the containers that the kubelet started for them. Hold starts what was not held.
func (p *plane) runsAgain(ctx context.Context, n *live.Node, lost []entry, ready func(*live.Target)) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, e := range lost {
		all.Go(func() error {
			at := whoseFiles(n, e.dir)
			u, err := newHeld(e.dir, e.unit)
			if err != nil {
				return err
			}
			t := live.Target{Unit: u, Identity: e.process}
			t.Identity.State, t.Identity.Detail, t.Identity.PID = "", "", 0
			if err := until(ctx, readyPoll, "wait until "+e.unit+" runs again", p.answers(at, u)); err != nil {
				return err
			}
			if e.unit == unitAPIServer {
				p.giveGrace(ctx, at)
			}
			ready(&t)
			return nil
		})
	}
	return all.Wait()
}

// whoseFiles is the node, or the one beside it of a further API server, that a unit's folder belongs to.
func whoseFiles(n *live.Node, dir string) *live.Node {
	for _, b := range n.Beside {
		if serverOf(b).dir == dir {
			return b
		}
	}
	return n
}

// readyGrace is how long an API server that lives again is given to become ready. One whose plugin is down, or cannot reach the
// remote KMS, does not become ready.
const readyGrace = 20 * time.Second

func (p *plane) giveGrace(ctx context.Context, n *live.Node) {
	ctx, cancel := context.WithTimeout(ctx, readyGrace)
	defer cancel()
	_ = n.Server.Ready(ctx)
}

// answers asks whether a unit runs, and whether its program answers as far as that can be asked.
func (p *plane) answers(n *live.Node, u *held) func(context.Context) error {
	return func(ctx context.Context) error {
		asking, cancel := context.WithTimeout(ctx, stateTimeout)
		defer cancel()
		s, err := u.client.State(asking)
		switch {
		case err != nil:
			return err
		case s.State != hold.Running:
			return fmt.Errorf("it is %s", s.State)
		case u.name == unitAPIServer:
			return serverOf(n).ask("/livez")(asking)
		}
		for _, g := range n.Plugins() {
			if inUnit(g, u.name) {
				return g.Healthy(asking)
			}
		}
		return nil
	}
}
