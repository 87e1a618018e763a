package kind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
)

// powerTimeout bounds the time from the start of nodes to API servers that are ready: 40 s on an idle machine.
const powerTimeout = 4 * time.Minute

// machines are nodes as one unit: their containers. A dead container has lost its power, a paused one stands still as a whole.
type machines struct {
	plane *plane
	nodes []*live.Node
	ready func(*live.Target)
}

var _ live.Unit = (*machines)(nil)

// Whole implements live.Plane.
func (p *plane) Whole(role string, nodes []*live.Node, ready func(*live.Target)) live.Unit {
	if role == history.RolePod {
		return &pods{plane: p, nodes: nodes, ready: ready}
	}
	return &machines{plane: p, nodes: nodes, ready: ready}
}

// those are the containers of the nodes in a state of docker's, "running" or "paused" for instance.
func (m *machines) those(ctx context.Context, states ...string) (containers []string, nodes []*live.Node, err error) {
	for _, n := range m.nodes {
		container := m.plane.container(n.Name)
		state, err := stateOf(ctx, container)
		if err != nil {
			return nil, nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		if slices.Contains(states, state) {
			containers, nodes = append(containers, container), append(nodes, n)
		}
	}
	return containers, nodes, nil
}

// stateOf is a container's state in docker's words. It is not asked for with inspect: a docker exec that was about to begin when the
// container was paused holds a lock until it goes on, inspect waits for that lock with the container's own, and then nothing unpauses it.
func stateOf(ctx context.Context, container string) (string, error) {
	state, err := docker(ctx, "ps", "--all", "--filter", "name=^/"+container+"$", "--format", "{{.State}}")
	if err == nil && state == "" {
		err = fmt.Errorf("there is no container %s", container)
	}
	return state, err
}

// act runs one docker command on all of the nodes that are in one of states, and gives those nodes.
func (m *machines) act(ctx context.Context, verb string, states ...string) ([]*live.Node, error) {
	containers, nodes, err := m.those(ctx, states...)
	if err != nil || len(nodes) == 0 {
		return nil, err
	}
	do := func() error {
		_, err := docker(ctx, append([]string{verb}, containers...)...)
		return err
	}
	if verb == "pause" { // to unpause waits for nobody: who waits himself would keep it from that for ever
		err = m.plane.starting.pause(do)
	} else {
		err = do()
	}
	if err != nil {
		return nil, fmt.Errorf("%s nodes: %w", verb, err)
	}
	return nodes, nil
}

// Kill implements live.Unit.
func (m *machines) Kill(ctx context.Context) error {
	containers, nodes, err := m.those(ctx, "running", "paused")
	if err == nil {
		err = endContainers(ctx, containers...)
	}
	if err != nil {
		return err
	}
	for _, n := range nodes {
		at, err := m.plane.diedAt(ctx, n.Name)
		if err != nil {
			return err
		}
		if err := m.plane.lose(history.RoleNode, n.Name, at); err != nil {
			return err
		}
		m.plane.Tell(at, history.Process{Role: history.RoleEtcd, Node: n.Name, State: history.ProcessKilled, Detail: powerLost})
	}
	if err := m.plane.keepAddresses(ctx, nodes); err != nil {
		m.plane.Spoil(live.DamagedPower)
		return err
	}
	return nil
}

// Stop implements live.Unit.
func (m *machines) Stop(context.Context) error {
	return errors.New("a node is not stopped but killed: it loses its power")
}

// Pause implements live.Unit.
func (m *machines) Pause(ctx context.Context) error {
	return m.freeze(ctx, "pause", "running", history.ProcessPaused, func(state string) bool { return lives(state) && state != history.ProcessPaused })
}

// Resume implements live.Unit. What the scenario had paused before the node goes on standing still.
func (m *machines) Resume(ctx context.Context) error {
	return m.freeze(ctx, "unpause", "paused", history.ProcessResumed, nil)
}

func (m *machines) freeze(ctx context.Context, verb, from, to string, which func(state string) bool) error {
	p := m.plane
	nodes, err := m.act(ctx, verb, from)
	if err != nil {
		return err
	}
	at := time.Now()
	if err := p.journals.Poll(); err != nil {
		return err
	}
	for _, n := range nodes {
		frozen := p.takeFrozen(n.Name)
		if which != nil {
			frozen = slices.DeleteFunc(p.living(n.Name), func(e entry) bool { return !which(e.process.State) })
			p.noteFrozen(n.Name, frozen)
		}
		for _, e := range frozen {
			p.tellUnit(at, e, to, "with its node")
		}
		p.Tell(at, history.Process{Role: history.RoleEtcd, Node: n.Name, State: to, Detail: "with its node"})
	}
	return nil
}

// Start implements live.Unit.
func (m *machines) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, powerTimeout)
	defer cancel()
	_, nodes, err := m.those(ctx, "exited", "created", "dead")
	if err != nil || len(nodes) == 0 {
		return err
	}
	p := m.plane
	if err := p.powerOn(ctx, byAddress(nodes, p.address)); err != nil {
		p.Spoil(live.DamagedPower)
		return err
	}
	waiting, ctx := errgroup.WithContext(ctx)
	for _, n := range nodes {
		waiting.Go(func() error {
			if err := p.isBack(ctx, n, m.ready); err != nil {
				return fmt.Errorf("node %s: %w", n.Name, err)
			}
			return nil
		})
	}
	if err := waiting.Wait(); err != nil {
		p.Spoil(live.DamagedPower)
		return err
	}
	return nil
}

// Status implements live.Unit: what happened to nodes is the scenario's to know.
func (m *machines) Status() live.Status { return live.Status{Phase: live.Running} }
