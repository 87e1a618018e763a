package kind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/hold"
	"github.com/kmsharness/kmsharness/harness/lifecycle/sidecar"
)

const (
	// parked is where the manifest is while the pod is down: outside the kubelet's folder, and one rename away from it.
	parked = "/etc/kubernetes/kube-apiserver.parked"
	// podTimeout bounds the end of a pod, whose containers have 30 s, and its start.
	podTimeout = 3 * time.Minute
)

// pods are the API servers' static pods of nodes as one unit. The kubelet runs what has a manifest.
type pods struct {
	plane *plane
	nodes []*live.Node
	ready func(*live.Target)
}

var _ live.Unit = (*pods)(nil)

func (p *pods) each(ctx context.Context, do func(context.Context, *live.Node) error) error {
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	all, ctx := errgroup.WithContext(ctx)
	for _, n := range p.nodes {
		all.Go(func() error {
			if err := do(ctx, n); err != nil {
				p.plane.Spoil(live.DamagedPower)
				return fmt.Errorf("pod of the API server on %s: %w", n.Name, err)
			}
			return nil
		})
	}
	return all.Wait()
}

// Stop implements live.Unit: the kubelet ends the API server, then the sidecars.
func (p *pods) Stop(ctx context.Context) error {
	return p.each(ctx, func(ctx context.Context, n *live.Node) error { return p.end(ctx, n, false) })
}

// Kill implements live.Unit: without its manifest the kubelet does not start again what dies.
func (p *pods) Kill(ctx context.Context) error {
	return p.each(ctx, func(ctx context.Context, n *live.Node) error { return p.end(ctx, n, true) })
}

func (p *pods) end(ctx context.Context, n *live.Node, kill bool) error {
	container := p.plane.container(n.Name)
	if err := p.plane.journals.Poll(); err != nil {
		return err
	}
	ran := p.plane.livingIn(n.Name, "")
	p.plane.noteLost(history.RolePod, n.Name, ran)
	if _, err := inside(ctx, container, nil, "sh", "-c", "if [ -e "+manifest+" ]; then mv "+manifest+" "+parked+"; fi"); err != nil {
		return err
	}
	at := time.Now()
	if kill && len(ran) > 0 {
		if err := killTasks(ctx, container, podFilters("kube-apiserver-"+n.Name)...); err != nil {
			return err
		}
		at = time.Now()
	}
	if err := until(ctx, readyPoll, "wait until the kubelet has ended it", p.gone(n)); err != nil {
		return err
	}
	if !kill { // who did not end in time was killed by the kubelet, and nobody told
		at = time.Now()
	}
	return p.tellKilled(n, at)
}

// tellKilled tells of the units that ended without a word.
func (p *pods) tellKilled(n *live.Node, at time.Time) error {
	if err := p.plane.journals.Poll(); err != nil {
		return err
	}
	for _, e := range p.plane.livingIn(n.Name, "") {
		p.plane.tellUnit(at, e, history.ProcessKilled, "with its pod")
	}
	return nil
}

// gone asks whether no container of the pod is left.
func (p *pods) gone(n *live.Node) func(context.Context) error {
	return func(ctx context.Context) error {
		tasks, err := tasksOf(ctx, p.plane.container(n.Name), podFilters("kube-apiserver-"+n.Name)...)
		if err == nil && len(tasks) > 0 {
			err = fmt.Errorf("%d containers run", len(tasks))
		}
		return err
	}
}

// Start implements live.Unit.
func (p *pods) Start(ctx context.Context) error {
	return p.each(ctx, func(ctx context.Context, n *live.Node) error {
		if _, err := inside(ctx, p.plane.container(n.Name), nil, "sh", "-c", "if [ -e "+parked+" ]; then mv "+parked+" "+manifest+"; fi"); err != nil {
			return err
		}
		return p.plane.runsAgain(ctx, n, p.plane.takeLost(history.RolePod, n.Name), p.ready)
	})
}

var errPodStands = errors.New("the API server's pod cannot be paused as a whole: pause its processes, or the node")

// Pause implements live.Unit.
func (p *pods) Pause(context.Context) error { return errPodStands }

// Resume implements live.Unit.
func (p *pods) Resume(context.Context) error { return errPodStands }

// Status implements live.Unit: what happened to pods is the scenario's to know.
func (p *pods) Status() live.Status { return live.Status{Phase: live.Running} }

// containerTimeout bounds a container's restart. The kubelet makes the first at once, and waits longer before each further one
// (10 s, 20 s … 5 min) until the container has run for 10 minutes.
const containerTimeout = 2 * time.Minute

// Labels by which the kubelet's containers are known to containerd.
const (
	labelContainer = "io.kubernetes.container.name"
	labelPod       = "io.kubernetes.pod.name"
	labelNamespace = "io.kubernetes.pod.namespace"
)

// podFilters pick the containers of a pod, its sandbox left out: it ends after them.
func podFilters(pod string) []string {
	return []string{fmt.Sprintf(`labels.%q==%s,labels."io.cri-containerd.kind"==container`, labelPod, pod)}
}

func containerFilters(pod, name string) []string {
	return []string{fmt.Sprintf(`labels.%q==%s,labels.%q==%s`, labelPod, pod, labelContainer, name)}
}

// containerOf is the name of the container in which a process of the API server's pod is, and its unit.
func containerOf(t live.Target) (name, unit string, err error) {
	switch t.Identity.Role {
	case history.RoleAPIServer:
		return sidecar.APIServerContainer, unitAPIServer, nil
	case history.RoleReporter:
		return containerName(unitReporter), unitReporter, nil
	case history.RolePlugin:
		if u, ok := t.Unit.(*held); ok { // a plugin is in whichever was free
			return containerName(u.name), u.name, nil
		}
	}
	return "", "", fmt.Errorf("role %s has no container of its own: expected plugin, reporter or apiserver", t.Identity.Role)
}

// tasksOf are the ids of containers of a node that run. A container that has ended stays known for a while.
func tasksOf(ctx context.Context, node string, filters ...string) ([]string, error) {
	known, err := inside(ctx, node, nil, append([]string{"ctr", "--namespace=k8s.io", "containers", "list", "--quiet"}, filters...)...)
	if err != nil {
		return nil, err
	}
	tasks, err := inside(ctx, node, nil, "ctr", "--namespace=k8s.io", "tasks", "list")
	if err != nil {
		return nil, err
	}
	return runningTasks(known, tasks), nil
}

// runningTasks are those of the containers whose task runs, of the lists that ctr prints.
func runningTasks(containers, tasks string) []string {
	known := strings.Fields(containers)
	var out []string
	for line := range strings.Lines(tasks) {
		// TASK PID STATUS
		if f := strings.Fields(line); len(f) == 3 && f[2] != "STOPPED" && slices.Contains(known, f[0]) {
			out = append(out, f[0])
		}
	}
	return out
}

// killTasks ends the containers that the filters pick all at once, past the kubelet. That each is gone is the caller's to see: one
// may end by itself, or by the kubelet when another one has ended, before its turn comes.
func killTasks(ctx context.Context, node string, filters ...string) error {
	ids, err := tasksOf(ctx, node, filters...)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return fmt.Errorf("no container runs with %s", strings.Join(filters, " or "))
	}
	const all = `for id in "$@"; do ctr --namespace=k8s.io tasks kill --signal SIGKILL "$id" & done; wait`
	_, err = inside(ctx, node, nil, append([]string{"sh", "-c", all, "kill"}, ids...)...)
	return err
}

// RestartContainer implements live.Plane: the kubelet starts again what has died.
func (p *plane) RestartContainer(ctx context.Context, t live.Target, ready func(*live.Target)) error {
	name, unit, err := containerOf(t)
	if err != nil {
		return err
	}
	node := t.Identity.Node
	return p.restart(ctx, t, unitOn{p.layout.node(node).state(), unit}, containerFilters("kube-apiserver-"+node, name), ready)
}

// RestartContainer implements live.Plane. The containers of the pod are called what their units are.
func (f *fleet) RestartContainer(ctx context.Context, t live.Target, ready func(*live.Target)) error {
	_, unit, err := containerOf(t)
	if err != nil {
		return err
	}
	dir := f.layout.node(t.Identity.Node).pod(f.Stand.APIServer).dir
	filters := []string{fmt.Sprintf(`labels.%q==%s,labels.%q==%s`, labelNamespace, f.Namespace, labelContainer, unit)}
	return f.restart(ctx, t, unitOn{dir, unit}, filters, ready)
}

// restart kills the container of a unit and returns when the unit runs in its successor.
func (p *plane) restart(ctx context.Context, t live.Target, k unitOn, filters []string, ready func(*live.Target)) error {
	ctx, cancel := context.WithTimeout(ctx, containerTimeout)
	defer cancel()
	u, err := newHeld(k.dir, k.unit)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := killTasks(ctx, p.container(t.Identity.Node), filters...); err != nil {
		return fmt.Errorf("kill container of %s: %w", k.unit, err)
	}
	if err := p.died(k, time.Now()); err != nil {
		return err
	}
	if err := until(ctx, readyPoll, "wait for the next container of "+k.unit, u.younger(began)); err != nil {
		return err
	}
	if err := t.Start(ctx); err != nil { // it may have been held; and it is to answer
		return err
	}
	ready(&t)
	return nil
}

// died tells of the end of a unit whose hold could not tell it.
func (p *plane) died(k unitOn, at time.Time) error {
	if err := p.journals.Poll(); err != nil {
		return err
	}
	for _, e := range p.ledger.living(func(x unitOn) bool { return x == k }) {
		p.tellUnit(at, e, history.ProcessKilled, "with its container")
	}
	return nil
}

// younger asks whether a hold answers that was started after an instant, and has decided what to do.
func (u *held) younger(than time.Time) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, stateTimeout)
		defer cancel()
		s, err := u.client.State(ctx)
		if err == nil && !s.Since.After(than) {
			err = fmt.Errorf("it has not been killed yet")
		}
		return err
	}
}

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
