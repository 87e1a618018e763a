package kind

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
)

const (
	aggregators     = "kms-health-aggregator" // name of the Deployment, its namespace and its label
	replicas        = 2
	labelAggregator = "app"
)

// deployAggregators makes a Deployment for each API server, through one of them, and waits for the pods.
func (p *plane) deployAggregators(ctx context.Context, server string) error {
	client, err := p.typed(server)
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: aggregators}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("namespace of the aggregator: %w", err)
	}
	deploy := func(name string, count int) (seats []*seat, err error) {
		if _, err := client.AppsV1().Deployments(aggregators).Create(ctx, deployment(p.archives.images.aggregator, name, count), metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("deploy the aggregator: %w", err)
		}
		for range count {
			seats = append(seats, &seat{dir: p.layout.shared()})
		}
		return seats, nil
	}
	if p.aggregators, err = deploy(aggregators, replicas); err != nil {
		return err
	}
	for _, f := range p.fleets {
		if f.aggregators, err = deploy(aggregatorsOf(f.Stand.APIServer), 1); err != nil {
			return err
		}
	}
	return p.seatAll(ctx, client)
}

// aggregatorsOf is the name of the Deployment for a further API server. It is part of the paths of sockets, which must be short.
func aggregatorsOf(apiServer string) string { return "health-" + apiServer }

// typed is an administrator's client of an API server.
func (p *plane) typed(server string) (kubernetes.Interface, error) {
	config, err := p.authority.AdminConfig(server)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// deployment of the aggregator below hold. It has no probes: what it does when it hangs is what is tested.
func deployment(image, name string, count int) *appsv1.Deployment {
	labels := map[string]string{labelAggregator: name}
	var volumes []corev1.Volume
	var mounts []corev1.VolumeMount
	for _, m := range folders()[:2] {
		volumes = append(volumes, corev1.Volume{Name: m.Name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: m.HostPath}}})
		mounts = append(mounts, corev1.VolumeMount{Name: m.Name, MountPath: m.MountPath})
	}
	unit := unitOfAggregator("$(POD)") // its files are where a pod on another node finds them
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(count)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					// Control-plane nodes, and no others that are marked: a drained one must not get the pod back.
					Tolerations:                   []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}},
					Affinity:                      preferring(nodeName(1)),
					Volumes:                       volumes,
					AutomountServiceAccountToken:  ptr.To(false),
					TerminationGracePeriodSeconds: ptr.To[int64](2),
					Containers: []corev1.Container{{
						Name: "aggregator", Image: image, ImagePullPolicy: corev1.PullIfNotPresent, VolumeMounts: mounts,
						Env:     []corev1.EnvVar{{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
						Command: holdIn(inNodeShared, unit, "--command", filepath.Join(inNodeShared, commandFile(unit))),
					}},
				},
			},
		},
	}
}

// preferring keeps the aggregator away from the nodes that most scenarios remove: that a Deployment moves a pod is seldom meant.
func preferring(node string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
		Weight: 100,
		Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}},
	}}}}
}

// AggregatorPlace implements live.Plane.
func (p *plane) AggregatorPlace(i int) live.Place { return p.placeIn(p.aggregators, i, "") }

// placeIn is the place of the i-th of the aggregators in seats, which may be those of a further API server.
func (p *plane) placeIn(seats []*seat, i int, apiServer string) live.Place {
	s := seats[(i-1)%len(seats)]
	_, node := s.pod()
	return live.Place{
		Server: p.serverFor(node), Dir: filepath.Join(p.layout.shared(), apiServer), SeenDir: filepath.Join(inNodeShared, apiServer), Mode: credentials,
		MetricsAddress: "127.0.0.1:0",
		Unit: func(identity history.Process, command func(context.Context) (live.Command, error)) live.Unit {
			if err := s.take(wordsOf(command), func(dir, unit string) error { return p.follow(dir, unit, identity) }); err != nil {
				return broken{err}
			}
			return s
		},
	}
}

// serverFor is where a pod on a node finds the API: the load balancer, or the only node itself.
func (p *plane) serverFor(node string) string {
	host := p.lb.ip
	if host == "" {
		host = p.address(node)
	}
	return "https://" + host + ":" + portAPIServer
}

// allSeats are those of the aggregators of all API servers.
func (p *plane) allSeats() []*seat {
	all := slices.Clone(p.aggregators)
	for _, f := range p.fleets {
		all = append(all, f.aggregators...)
	}
	return all
}

// seat is the place of one replica of the aggregator. The pod in it changes when its node is drained: the Deployment makes
// another, whose program waits for its command.
type seat struct {
	dir string // of the units' files on this machine

	mu        sync.Mutex
	name      string // of the pod; empty: nobody is in it
	node      string
	unit      *held
	command   func(context.Context) ([]string, error)
	following func(dir, unit string) error
}

var _ live.Unit = (*seat)(nil)

// pod is the one in the seat, and its node.
func (s *seat) pod() (name, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.name, s.node
}

// put puts a pod into the seat.
func (s *seat) put(name, node string) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.name, s.node = name, node
	if s.unit, err = newHeld(s.dir, unitOfAggregator(name)); err != nil {
		return err
	}
	s.unit.command = s.command
	if s.following == nil {
		return nil
	}
	return s.following(s.dir, s.unit.name)
}

// take makes the seat a scenario's.
func (s *seat) take(command func(context.Context) ([]string, error), follow func(dir, unit string) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.command, s.following, s.unit.command = command, follow, command
	return follow(s.dir, s.unit.name)
}

func (s *seat) held() *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unit
}

// Start implements live.Unit, and so do the others.
func (s *seat) Start(ctx context.Context) error  { return s.held().Start(ctx) }
func (s *seat) Stop(ctx context.Context) error   { return s.held().Stop(ctx) }
func (s *seat) Kill(ctx context.Context) error   { return s.held().Kill(ctx) }
func (s *seat) Pause(ctx context.Context) error  { return s.held().Pause(ctx) }
func (s *seat) Resume(ctx context.Context) error { return s.held().Resume(ctx) }
func (s *seat) Status() live.Status              { return s.held().Status() }

// seatAggregators waits until the Deployments are complete and gives every pod a seat. A pod that has one keeps it.
func (p *plane) seatAggregators(ctx context.Context) error {
	through, err := p.donor("")
	if err != nil {
		return err
	}
	client, err := p.typed(through.Server.URL())
	if err != nil {
		return err
	}
	return p.seatAll(ctx, client)
}

func (p *plane) seatAll(ctx context.Context, client kubernetes.Interface) error {
	if err := seatOne(ctx, client, aggregators, p.aggregators); err != nil {
		return err
	}
	for _, f := range p.fleets {
		if err := seatOne(ctx, client, aggregatorsOf(f.Stand.APIServer), f.aggregators); err != nil {
			return err
		}
	}
	return nil
}

// seatOne does it for one Deployment.
func seatOne(ctx context.Context, client kubernetes.Interface, name string, seats []*seat) error {
	return until(ctx, 10*readyPoll, "wait for the pods of "+name, func(ctx context.Context) error {
		pods, err := client.CoreV1().Pods(aggregators).List(ctx, metav1.ListOptions{LabelSelector: labelAggregator + "=" + name})
		if err != nil {
			return err
		}
		return assign(seats, running(pods.Items))
	})
}

// running are the nodes of the pods that run, by the pods' names.
func running(pods []corev1.Pod) map[string]string {
	all := map[string]string{}
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			all[pod.Name] = pod.Spec.NodeName
		}
	}
	return all
}

// assign puts pods without a seat, in the order of their names, into seats whose pod is gone; an error while there are too
// few or too many.
func assign(seats []*seat, pods map[string]string) error {
	if len(pods) != len(seats) {
		return fmt.Errorf("%d pods run, expected %d", len(pods), len(seats))
	}
	free := maps.Clone(pods)
	var empty []*seat
	for _, s := range seats {
		name, _ := s.pod()
		if _, there := free[name]; !there {
			empty = append(empty, s)
			continue
		}
		delete(free, name)
	}
	for i, name := range slices.Sorted(maps.Keys(free)) {
		if err := empty[i].put(name, free[name]); err != nil {
			return err
		}
	}
	return nil
}
