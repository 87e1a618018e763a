package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/supervisor"
)

// podRevision is what changes of an API server's pod from one revision to the next.
type podRevision struct {
	number  int
	plugins []string          // units of its containers for plugins; without any there is no reporter either
	images  map[string]string // by unit, of plugins for which the operator chose one
}

// podRevision of the pod on a node.
func (s *server) podRevision() podRevision {
	return podRevision{int(s.revision.Load()), s.plugins.names(), s.plugins.chosen()}
}

// podShape is what the pods of a scenario are like: whether an operator chooses their plugins.
type podShape struct{ operated bool }

// containersFor are the units of the containers that a pod has for the plugins of keyIDs.
func (s podShape) containersFor(keyIDs []string) []string {
	if s.operated {
		return unitsOfPlugins(keyIDs)
	}
	return pluginContainerUnits()
}

// podNamespace is the namespace of static pods: kubeadm's, or the one in which an operator looks for them.
func (s podShape) podNamespace() string {
	if s.operated {
		return operand.Namespace
	}
	return metav1.NamespaceSystem
}

var _ cluster.Roller = kubePods{}

// makeNamespace makes the namespace of the static pods: without it a kubelet cannot show them. kubeadm's is always there.
func makeNamespace(ctx context.Context, p *controlPlane) error {
	if p.podNamespace() == metav1.NamespaceSystem {
		return nil
	}
	through, err := p.donor("")
	if err != nil {
		return err
	}
	return p.create(ctx, through.URL, &corev1.Namespace{TypeMeta: typeOf("v1", "Namespace"), ObjectMeta: metav1.ObjectMeta{Name: p.podNamespace()}})
}

// Roll implements cluster.Roller: the kubelet ends the pod, its manifest changes, and the kubelet starts it. The next attempt goes on where one failed, or
// where a plugin could not run.
func (p kubePods) Roll(ctx context.Context, n *cluster.Node, r cluster.PodRevision) (made cluster.Pod, err error) {
	s := serverOf(n)
	pods, runs := &staticPods{controlPlane: p.controlPlane, nodes: []*cluster.Node{n}, ready: r.Ready}, s.Status().Running()
	if s.rolling == nil {
		s.rolling = &runs
	}
	ran := *s.rolling
	if runs {
		err = s.Stop(ctx) // the grace of a kubelet is long, and then it ends all containers at once
	}
	if err == nil {
		err = pods.Stop(ctx)
	}
	if err == nil {
		err = revise(ctx, p.controlPlane, n, r)
	}
	for _, image := range r.Images {
		if err == nil {
			err = p.archives.provide(ctx, p.container(n.Name), n.Name, image)
		}
	}
	if err == nil && ran {
		err = s.release()
	}
	if err != nil {
		return made, err
	}
	spec := p.spec(n)
	if err := injectManifest(ctx, p.container(n.Name), parked, spec); err != nil {
		return made, err
	}
	made = cluster.Pod{Namespace: p.podNamespace(), Name: staticPod(n.Name)}
	for _, c := range spec.Sidecars {
		made.Containers = append(made.Containers, c.Name)
	}
	made.Waiting, err = p.startUnlessWaiting(ctx, n, func(ctx context.Context) error {
		if err := pods.Start(ctx); err != nil {
			return err
		}
		return s.answer(ctx, n, ran, r.Ready)
	})
	if err == nil && len(made.Waiting) == 0 {
		s.rolling = nil
	}
	return made, err
}

// waitingPoll is how often the kubelet is asked about containers that start.
const waitingPoll = 500 * time.Millisecond

// errWaiting ends the start of a pod of which the kubelet says that it does not come.
var errWaiting = errors.New("a plugin cannot run")

// startUnlessWaiting starts the pod of a node, until the kubelet says that containers of plugins cannot run.
func (p kubePods) startUnlessWaiting(ctx context.Context, n *cluster.Node, start func(context.Context) error) ([]cluster.WaitingContainer, error) {
	kubelet, err := kubelet(p.Authority, p.address(n.Name))
	if err != nil {
		return nil, err
	}
	defer kubelet.Close()
	is := serverOf(n).podRevision()
	return unlessWaiting(ctx, start, func(ctx context.Context) ([]cluster.WaitingContainer, error) {
		pods, err := kubeletPods(ctx, kubelet)
		if err != nil {
			return nil, err
		}
		pod := revisedPod(pods, p.podNamespace(), staticPod(n.Name), is.number)
		if pod == nil {
			return nil, errors.New("the kubelet has no pod of this revision")
		}
		return waitingPlugins(pod, is.plugins), nil
	})
}

// unlessWaiting starts something, and gives it up with the cause errWaiting when look finds containers that wait. They are returned then.
func unlessWaiting(ctx context.Context, start func(context.Context) error, look func(context.Context) ([]cluster.WaitingContainer, error)) (waiting []cluster.WaitingContainer, err error) {
	starting, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	watching, started := context.WithCancel(ctx)
	defer started()
	var watch sync.WaitGroup
	watch.Go(func() {
		found := func(ctx context.Context) (err error) {
			if waiting, err = look(ctx); err == nil && len(waiting) == 0 {
				err = errors.New("no plugin waits")
			}
			return err
		}
		if until(watching, waitingPoll, "look for plugins that cannot run", found) == nil {
			giveUp(errWaiting)
		}
	})
	err = start(starting)
	started()
	watch.Wait()
	if err != nil && len(waiting) > 0 {
		return waiting, nil
	}
	return nil, err
}

// release has the supervisor of the container that comes start the API server by itself, though the last was told to keep it down.
func (s *server) release() error {
	if err := os.Remove(filepath.Join(s.dir, supervisorSocket(s.unit)+supervisor.MarkerSuffix)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("let the API server start: %w", err)
	}
	return nil
}

// answer waits until the plugins of a new pod respond, and its API server too if ran is true.
func (s *server) answer(ctx context.Context, n *cluster.Node, ran bool, ready func(*cluster.Target)) error {
	if err := s.plugins.answer(ctx, n, ready); err != nil || !ran {
		return err
	}
	if err := s.awaitSupervisor(ctx); err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	ready(&cluster.Target{Unit: s, Identity: history.Process{Role: history.RoleAPIServer, APIServer: n.APIServer, Node: n.Name}})
	return nil
}

// Roll implements cluster.Roller: the programs end, the Deployment changes while it has no pod, and the next pod has what the revision has. It
// fails after podTimeout, for example while no controller manager runs; the next attempt goes on from there.
func (f *aggregatedServers) Roll(ctx context.Context, n *cluster.Node, r cluster.PodRevision) (made cluster.Pod, err error) {
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	s := serverOf(n)
	if s.rolling == nil {
		ran := s.Status().Running()
		if err := f.endPrograms(ctx, n); err != nil {
			return made, err
		}
		s.rolling = &ran
	}
	if err := f.scale(ctx, n, 0); err != nil {
		return made, err
	}
	if err := revise(ctx, f.controlPlane, n, r); err != nil {
		return made, err
	}
	through, err := f.donor("")
	if err != nil {
		return made, err
	}
	deployment := deploymentOf(f.Stub, f.archives.images, n.Name, f.ports, s.podRevision())
	if err := f.create(ctx, through.URL, deployment); err != nil {
		return made, err
	}
	if err := f.awaitSupervisors(ctx, n); err != nil {
		return made, err
	}
	made = cluster.Pod{Namespace: f.Namespace, Name: deployment.Name}
	for _, c := range deployment.Spec.Template.Spec.InitContainers {
		made.Containers = append(made.Containers, c.Name)
	}
	if err := s.answer(ctx, n, *s.rolling, r.Ready); err != nil {
		return made, err
	}
	s.rolling = nil
	return made, nil
}

// endPrograms ends what runs in the pod of a node. A pod without plugins has no reporter.
func (f *aggregatedServers) endPrograms(ctx context.Context, n *cluster.Node) error {
	s := serverOf(n)
	err := s.Stop(ctx)
	if r := n.Reporter(); r != nil && len(s.plugins.names()) > 0 {
		err = errors.Join(err, r.Stop(ctx))
	}
	for _, g := range n.Plugins() {
		err = errors.Join(err, g.End(ctx))
	}
	return err
}

// firstRevision is that of a pod with which a scenario begins.
const firstRevision = 1

// restorePods makes the pods of nodes those with which a scenario begins, without faults.
func restorePods(ctx context.Context, nodes []*cluster.Node, is podShape, by cluster.Roller, keyIDs []string) error {
	return cluster.EachNode(ctx, nodes, func(ctx context.Context, n *cluster.Node) error {
		if err := reshape(ctx, is, by, n, keyIDs); err != nil {
			return err
		}
		return serverOf(n).reset(ctx, n, keyIDs)
	})
}

// reshape makes the pod of a node one for a scenario, with containers for the plugins of keyIDs or for any.
func reshape(ctx context.Context, is podShape, by cluster.Roller, n *cluster.Node, keyIDs []string) error {
	s := serverOf(n)
	if slices.Equal(s.plugins.names(), is.containersFor(keyIDs)) && s.revision.Load() == firstRevision {
		return nil
	}
	_, err := by.Roll(ctx, n, cluster.PodRevision{Number: firstRevision, Plugins: keyIDs, Ready: func(*cluster.Target) {}, Change: func(context.Context) error {
		_, err := s.SetEncryption(cluster.Plugins(keyIDs...))
		return err
	}})
	return err
}

// revise prepares the next revision of a pod that is down. Containers that only the old revision had do not start again, and the reporter waits for its
// command.
func revise(ctx context.Context, p *controlPlane, n *cluster.Node, r cluster.PodRevision) error {
	s := serverOf(n)
	before := s.plugins.names()
	s.revision.Store(int64(r.Number))
	s.plugins.become(p.containersFor(r.Plugins), r.Images, n)
	if err := s.plugins.prepare(ctx, n, r.Plugins); err != nil {
		return err
	}
	reporter := s.plugins.files.unit(unitReporter)
	if err := os.Remove(filepath.Join(reporter.dir, commandFile(unitReporter))); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the reporter's command of the revision before: %w", err)
	}
	now := s.plugins.names()
	p.units.setAbsent(reporter, len(now) == 0)
	p.units.take(func(u *unitState) bool {
		gone := slices.Contains(before, u.unit) && !slices.Contains(now, u.unit)
		return u.pod() == s.dir && u.lostWith == history.RolePod && (u.unit == unitReporter || gone)
	}, func(u *unitState) { u.lostWith = "" })
	return r.Change(ctx)
}

// answer starts the plugins of the pod that do not run yet, and returns when all answer.
func (p *podPlugins) answer(ctx context.Context, n *cluster.Node, ready func(*cluster.Target)) error {
	for _, s := range p.containers() {
		if !s.usedBy(n) {
			continue
		}
		g := s.is.Load()
		plugin, _ := heldBy(g.Unit)
		if err := plugin.awaitSupervisor(ctx); err != nil {
			return err
		}
		if err := g.Start(ctx); err != nil {
			return err
		}
		ready(&g.Target)
	}
	return nil
}
