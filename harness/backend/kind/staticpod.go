package kind

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/supervisor"
	"github.com/kmsharness/kmsharness/operator/sidecar"
)

const (
	// parked is where the manifest is while the pod is down: outside the kubelet's folder, and one rename away from it.
	parked = "/etc/kubernetes/kube-apiserver.parked"
	// podTimeout bounds the end of a pod, whose containers have 30 s, and its start.
	podTimeout = 3 * time.Minute
	// containerTimeout bounds a container's restart. The kubelet makes the first at once, and waits longer before each further one
	// (10 s, 20 s … 5 min) until the container has run for 10 minutes.
	containerTimeout = 2 * time.Minute
	// readyGrace is how long an API server that lives again is given to become ready. One whose plugin is down, or cannot reach the
	// remote KMS, does not become ready.
	readyGrace = 20 * time.Second
)

var errPodRuns = errors.New("the API server's pod cannot be paused as a whole: pause its processes, or the node")

// staticPods are the API servers' static pods of nodes as one unit. The kubelet runs what has a manifest.
type staticPods struct {
	broken       // it cannot be paused
	controlPlane *controlPlane
	nodes        []*cluster.Node
	ready        func(*cluster.Target)
}

var _ cluster.Unit = (*staticPods)(nil)

func (p *staticPods) each(ctx context.Context, do func(context.Context, *cluster.Node) error) error {
	return eachPod(ctx, p.controlPlane, "pod of the API server", p.nodes, do)
}

// eachPod does something to the pods of nodes at the same time. What cannot be done is not worth another try, unless it was given up because a plugin
// cannot run.
func eachPod(ctx context.Context, p *controlPlane, name string, nodes []*cluster.Node, do func(context.Context, *cluster.Node) error) error {
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	return cluster.EachNode(ctx, nodes, func(ctx context.Context, n *cluster.Node) error {
		err := do(ctx, n)
		if err == nil {
			return nil
		}
		if !errors.Is(context.Cause(ctx), errWaiting) {
			p.MarkDirty(cluster.TaintedPower)
		}
		return fmt.Errorf("%s: %w", name, err)
	})
}

// Stop implements cluster.Unit: the kubelet ends the API server, then the sidecars.
func (p *staticPods) Stop(ctx context.Context) error {
	return p.each(ctx, func(ctx context.Context, n *cluster.Node) error { return p.end(ctx, n, false) })
}

// Kill implements cluster.Unit: without its manifest the kubelet does not start again what dies.
func (p *staticPods) Kill(ctx context.Context) error {
	return p.each(ctx, func(ctx context.Context, n *cluster.Node) error { return p.end(ctx, n, true) })
}

// end takes the manifest away and returns when the kubelet has ended and forgotten the pod: one that is put back earlier is taken for the old one, and
// not started. With kill the containers end at once, and not as the kubelet asks them. Journals are read first: those of its plugins go with it.
func (p *staticPods) end(ctx context.Context, n *cluster.Node, kill bool) error {
	c, units, pod := p.controlPlane.container(n.Name), p.controlPlane.units, inDir(serverOf(n).dir)
	filter := fmt.Sprintf(`labels.%q==%s,labels."io.cri-containerd.kind"==container`, labelPod, staticPod(n.Name)) // the sandbox ends after them
	if err := units.journals.Poll(); err != nil {
		return err
	}
	ran := units.lose(history.RolePod, pod)
	if err := c.move(ctx, manifest, parked); err != nil {
		return err
	}
	at := time.Now()
	if kill && len(ran) > 0 {
		if err := c.killTasks(ctx, filter); err != nil {
			return err
		}
		at = time.Now()
	}
	err := until(ctx, readyPoll, "wait until the kubelet has ended it", func(ctx context.Context) error {
		tasks, err := c.tasks(ctx, filter)
		if err == nil && len(tasks) > 0 {
			err = fmt.Errorf("%d containers run", len(tasks))
		}
		return err
	})
	if err != nil {
		return err
	}
	if !kill { // what did not end in time was killed by the kubelet, and nothing recorded it
		at = time.Now()
	}
	if err := units.killed(at, pod, "with its pod"); err != nil {
		return err
	}
	kubelet, err := kubelet(p.controlPlane.Authority, p.controlPlane.address(n.Name))
	if err != nil {
		return err
	}
	defer kubelet.Close()
	return until(ctx, readyPoll, "wait until the kubelet has forgotten it", func(ctx context.Context) error { return forgetsPod(ctx, c, kubelet) })
}

// forgetsPod returns an error as long as the kubelet keeps the folder of a static pod of an API server that has ended, or a worker for it, which may
// end with the next round of its housekeeping, 2 s later. A pod with the same name that comes before is not looked at again for 10 to 15 s: the
// backOffPeriod of the kubelet's pod workers.
func forgetsPod(ctx context.Context, c container, kubelet *cluster.Client) error {
	folders, err := c.exec(ctx, "find", "/var/lib/kubelet/pods", "-mindepth", "3", "-maxdepth", "3", "-name", sidecar.APIServerContainer)
	if err != nil {
		return err
	}
	if folders != "" {
		return fmt.Errorf("%s is there", folders)
	}
	n, err := endingStaticPods(ctx, kubelet)
	if err == nil && n > 0 {
		err = fmt.Errorf("%d static pods are ending", n)
	}
	return err
}

// Start implements cluster.Unit.
func (p *staticPods) Start(ctx context.Context) error {
	return p.each(ctx, func(ctx context.Context, n *cluster.Node) error {
		if err := p.controlPlane.container(n.Name).move(ctx, parked, manifest); err != nil {
			return err
		}
		return runsAgain(ctx, n, p.controlPlane.units.regain(history.RolePod, n.Name), p.ready)
	})
}

// Status implements cluster.Unit: what happened to pods is the scenario's to know.
func (p *staticPods) Status() cluster.Status { return cluster.Status{Phase: cluster.Running} }

// staticPod is the name of the API server's pod on a node.
func staticPod(node string) string { return "kube-apiserver-" + node }

// Labels by which the kubelet's containers are known to containerd.
const (
	labelContainer = "io.kubernetes.container.name"
	labelPod       = "io.kubernetes.pod.name"
	labelNamespace = "io.kubernetes.pod.namespace"
)

// containerFilter picks a container by the label of its pod.
func containerFilter(label, value, name string) string {
	return fmt.Sprintf(`labels.%q==%s,labels.%q==%s`, label, value, labelContainer, name)
}

// unitOf is the unit in which a process of an API server's pod is.
func unitOf(t cluster.Target) (string, error) {
	switch t.Identity.Role {
	case history.RoleAPIServer:
		return unitAPIServer, nil
	case history.RoleReporter:
		return unitReporter, nil
	case history.RolePlugin:
		if u, _ := heldBy(t.Unit); u != nil { // a plugin is in whichever was free
			return u.unit, nil
		}
	}
	return "", fmt.Errorf("role %s has no container of its own: expected plugin, reporter or apiserver", t.Identity.Role)
}

// RestartContainer implements cluster.Processes: the kubelet starts again what has died.
func (p kubePods) RestartContainer(ctx context.Context, t cluster.Target, ready func(*cluster.Target)) error {
	node := t.Identity.Node
	return p.restart(ctx, t, "", ready, func(unit string) string {
		name := containerName(unit)
		if unit == unitAPIServer {
			name = sidecar.APIServerContainer
		}
		return containerFilter(labelPod, staticPod(node), name)
	})
}

// restart kills the container of a target's unit, which the filter picks, and returns when the unit runs in its successor.
func (p *controlPlane) restart(ctx context.Context, t cluster.Target, apiServer string, ready func(*cluster.Target), filter func(unit string) string) error {
	ctx, cancel := context.WithTimeout(ctx, containerTimeout)
	defer cancel()
	unit, err := unitOf(t)
	if err != nil {
		return err
	}
	node := t.Identity.Node
	u, err := newHeld(p.layout.node(node).pod(apiServer).unit(unit))
	if err != nil {
		return err
	}
	began := time.Now()
	if err := p.container(node).killTasks(ctx, filter(unit)); err != nil {
		return fmt.Errorf("kill container of %s: %w", unit, err)
	}
	died := func(s *unitState) bool { return s.unitKey == u.unitKey && s.lives() }
	if err := p.units.killed(time.Now(), died, "with its container"); err != nil {
		return err
	}
	// A supervisor that was started since has decided what to do.
	err = until(ctx, readyPoll, "wait for the next container of "+unit, func(ctx context.Context) error {
		s, err := u.state(ctx)
		if err == nil && !s.Since.After(began) {
			err = errors.New("it has not been killed yet")
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := t.Start(ctx); err != nil { // it may have been held; and it is to answer
		return err
	}
	ready(&t)
	return nil
}

// runsAgain returns when units run in the containers that the kubelet started for them. Hold starts what was not held.
func runsAgain(ctx context.Context, n *cluster.Node, lost []unitState, ready func(*cluster.Target)) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, s := range lost {
		all.Go(func() error {
			at := nodeOfFiles(n, s.pod())
			u, err := newHeld(s.unitKey)
			if err != nil {
				return err
			}
			t := cluster.Target{Unit: u, Identity: s.process}
			t.Identity.State, t.Identity.Detail, t.Identity.PID = "", "", 0
			answers := func(ctx context.Context) error { return u.answers(ctx, at) }
			if err := until(ctx, readyPoll, "wait until "+s.unit+" runs again", answers); err != nil {
				return err
			}
			if s.unit == unitAPIServer {
				ctx, cancel := context.WithTimeout(ctx, readyGrace)
				defer cancel()
				_ = at.Server.Ready(ctx)
			}
			ready(&t)
			return nil
		})
	}
	return all.Wait()
}

// nodeOfFiles is the node, or the one beside it of an aggregated API server, that a unit's folder belongs to.
func nodeOfFiles(n *cluster.Node, dir string) *cluster.Node {
	for _, b := range n.Alongside {
		if serverOf(b).dir == dir {
			return b
		}
	}
	return n
}

// answers returns an error unless a unit of a node runs, and its program answers as far as that can be asked.
func (u *held) answers(ctx context.Context, n *cluster.Node) error {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	s, err := u.client.State(ctx)
	switch {
	case err != nil:
		return err
	case s.State != supervisor.Running:
		return fmt.Errorf("it is %s", s.State)
	case u.unit == unitAPIServer:
		return serverOf(n).ask("/livez")(ctx)
	}
	for _, g := range n.Plugins() {
		if inUnit(g, u.unit) {
			return g.Answers(ctx)
		}
	}
	return nil
}
