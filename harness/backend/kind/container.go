package kind

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/lifecycle/sidecar"
)

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
