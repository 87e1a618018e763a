package kind

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/hold"
)

// absences are the units that went away with a node or a pod, for its return.
type absences struct {
	lost   map[[2]string][]entry // by role and node
	frozen map[string][]entry    // by node
}

// noteLost notes the units that ended with a node or a pod; those of an end that was noted already stay.
func (p *plane) noteLost(role, node string, lost []entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.absent.lost == nil {
		p.absent.lost = map[[2]string][]entry{}
	}
	k := [2]string{role, node}
	p.absent.lost[k] = append(p.absent.lost[k], lost...)
	delete(p.absent.frozen, node)
}

func (p *plane) takeLost(role, node string) []entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := [2]string{role, node}
	lost := p.absent.lost[k]
	delete(p.absent.lost, k)
	return lost
}

func (p *plane) noteFrozen(node string, frozen []entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.absent.frozen == nil {
		p.absent.frozen = map[string][]entry{}
	}
	p.absent.frozen[node] = frozen
}

func (p *plane) takeFrozen(node string) []entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	frozen := p.absent.frozen[node]
	delete(p.absent.frozen, node)
	return frozen
}

// runsAgain returns when the units run in the containers that the kubelet started for them. Hold starts what was not held.
func (p *plane) runsAgain(ctx context.Context, n *live.Node, lost []entry, ready func(*live.Target)) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, e := range lost {
		all.Go(func() error {
			u, err := newHeld(p.layout.node(n.Name), e.unit)
			if err != nil {
				return err
			}
			t := live.Target{Unit: u, Identity: e.process}
			t.Identity.State, t.Identity.Detail, t.Identity.PID = "", "", 0
			if err := until(ctx, readyPoll, "wait until "+e.unit+" runs again", p.answers(n, u)); err != nil {
				return err
			}
			if e.unit == unitAPIServer {
				p.giveGrace(ctx, n)
			}
			ready(&t)
			return nil
		})
	}
	return all.Wait()
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
			return n.Server.(*server).ask("/livez")(asking)
		}
		for _, g := range n.Plugins() {
			if u.name == unitOfPlugin(g.KeyID) {
				return g.Healthy(asking)
			}
		}
		return nil
	}
}
