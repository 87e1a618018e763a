package kind

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"

	containers "github.com/kmsharness/kmsharness/ci/images"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/sidecar"
)

const (
	aggregators     = "kms-health-aggregator" // name of the Deployment, its namespace and its label
	replicas        = scenario.MaxAggregators
	labelAggregator = "app"
	// operatorUnderTest is the name of the Deployment of an operator under test, in the namespace of the aggregators.
	operatorUnderTest = "encryption-operator"
)

// aggregatorsOf is the name of the Deployment for an API server. It is part of the paths of sockets, which must be short.
func aggregatorsOf(apiServer string) string {
	if apiServer == "" {
		return aggregators
	}
	return "health-" + apiServer
}

// deployment is the Deployment of the aggregators of an API server, or of the operator under test, and its replicas. It is safe for concurrent use.
type deployment struct {
	name, role string
	streams    bool // it serves the streams of reporters
	replicas   []*replica
}

// newDeployment is one of programs of a role, of which nothing runs yet; dir is of the units' files on this machine.
func newDeployment(name, role string, count int, dir string, u *units) *deployment {
	d := &deployment{name: name, role: role}
	for range count {
		d.replicas = append(d.replicas, &replica{dir: dir, units: u})
	}
	return d
}

// create makes the Deployment, through an API server.
func (d *deployment) create(ctx context.Context, client *resources.Resources, image string) error {
	if err := client.Create(ctx, d.object(image)); err != nil {
		return fmt.Errorf("deploy the %s: %w", d.role, err)
	}
	if d.streams {
		return d.serveStreams(ctx, client)
	}
	return nil
}

// assign waits until the Deployment is complete and gives every pod a replica. A pod that has one keeps it.
func (d *deployment) assign(ctx context.Context, client *resources.Resources) error {
	return until(ctx, 10*readyPoll, "wait for the pods of "+d.name, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := client.WithNamespace(aggregators).List(ctx, &pods, resources.WithLabelSelector(labelAggregator+"="+d.name)); err != nil {
			return err
		}
		if err := d.put(running(pods.Items)); err != nil || !d.streams {
			return err
		}
		return d.label(ctx, client)
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

// put gives pods that are new, in the order of their names, to replicas whose pod is gone; an error while there are too few or too many.
func (d *deployment) put(pods map[string]string) error {
	if len(pods) != len(d.replicas) {
		return fmt.Errorf("%d pods run, expected %d", len(pods), len(d.replicas))
	}
	free := maps.Clone(pods)
	var empty []*replica
	for _, r := range d.replicas {
		name, _ := r.where()
		if _, there := free[name]; !there {
			empty = append(empty, r)
		}
		delete(free, name)
	}
	for i, name := range slices.Sorted(maps.Keys(free)) {
		if err := empty[i].move(name, free[name]); err != nil {
			return err
		}
	}
	return nil
}

// replica is one replica of a Deployment as a unit. Its pod changes when its node is drained: the Deployment makes another, whose
// program waits for its command.
type replica struct {
	dir   string // of the units' files on this machine
	units *units
	// streams is the address of its Service for the streams of reporters; empty: there is none.
	streams string

	mu        sync.Mutex
	pod, node string // empty: there is none yet
	unit      *held
	command   func(context.Context) ([]string, error)
	identity  *history.Process // that a scenario gave it; nil: none has yet
}

var _ cluster.Unit = (*replica)(nil)

// where is its pod, and the pod's node.
func (r *replica) where() (pod, node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pod, r.node
}

// move makes a pod that of the replica, in the place of one that is gone.
func (r *replica) move(pod, node string) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.units.forget(func(s *unitState) bool { return r.unit != nil && s.unitKey == r.unit.unitKey })
	r.pod, r.node = pod, node
	if r.unit, err = newHeld(unitKey{r.dir, pod}); err != nil {
		return err
	}
	return r.follow()
}

// take makes the replica a scenario's.
func (r *replica) take(identity history.Process, command func(context.Context) (cluster.Command, error)) cluster.Unit {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.command, r.identity = argumentsOf(command), &identity
	if err := r.follow(); err != nil {
		return broken{err}
	}
	return r
}

// follow makes the unit the scenario's, if there is one.
func (r *replica) follow() error {
	r.unit.command = r.command
	if r.identity == nil {
		return nil
	}
	return r.units.followOne(r.unit.unitKey, r.node, *r.identity)
}

func (r *replica) held() *held {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unit
}

// Start implements cluster.Unit, and so do the others.
func (r *replica) Start(ctx context.Context) error  { return r.held().Start(ctx) }
func (r *replica) Stop(ctx context.Context) error   { return r.held().Stop(ctx) }
func (r *replica) Kill(ctx context.Context) error   { return r.held().Kill(ctx) }
func (r *replica) Pause(ctx context.Context) error  { return r.held().Pause(ctx) }
func (r *replica) Resume(ctx context.Context) error { return r.held().Resume(ctx) }
func (r *replica) Status() cluster.Status           { return r.held().Status() }

// deploy makes Deployments.
func deploy(ctx context.Context, client *resources.Resources, all []*deployment, from images) error {
	if err := client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: aggregators}}); err != nil {
		return fmt.Errorf("namespace of the aggregator: %w", err)
	}
	for _, d := range all {
		if err := d.create(ctx, client, from.of(d.role)); err != nil {
			return err
		}
	}
	return nil
}

// assign gives every pod of a Deployment a replica, as an API server knows the pods.
func (p *controlPlane) assign(ctx context.Context, server string) error {
	client, err := p.objectsThrough(server)
	if err != nil {
		return err
	}
	for _, d := range p.deployments() {
		if err := d.assign(ctx, client); err != nil {
			return err
		}
	}
	return nil
}

// deployments are those of the aggregators of all API servers, and of the operator under test.
func (p *controlPlane) deployments() []*deployment {
	all := []*deployment{p.aggregators}
	if p.operator != nil {
		all = append(all, p.operator)
	}
	for _, f := range p.fleets {
		all = append(all, f.aggregators)
	}
	return all
}

// replicasOn are the replicas on a node in which a program runs.
func replicasOn(node string, deployments []*deployment) []*replica {
	var all []*replica
	for _, d := range deployments {
		for _, r := range d.replicas {
			if _, at := r.where(); at == node && r.Status().Running() {
				all = append(all, r)
			}
		}
	}
	return all
}

// places are the pods of Deployments in which programs of an API server run. They implement cluster.Places.
type places struct {
	*controlPlane
	aggregators *deployment
	apiServer   string // empty: kube-apiserver
}

// OperatorPlace is the pod of an operator that is an image, or else this machine.
func (l places) OperatorPlace() cluster.Place {
	if l.operator == nil {
		at := cluster.PlaceOn(l.Host, l.ClientServer(), l.layout.dir, nil, nil)
		at.PodImage = containers.Registry + l.archives.images.plugin
		return at
	}
	at := l.in(l.operator, 1, "")
	at.LogFile = l.layout.deployed(l.operator.role).file(logFile(l.operator.role))
	return at
}

func (l places) AggregatorPlace(i int) cluster.Place { return l.in(l.aggregators, i, l.apiServer) }

// in is the place of the i-th replica of a Deployment, which may be that of an aggregated API server.
func (l places) in(d *deployment, i int, apiServer string) cluster.Place {
	r := d.replicas[(i-1)%len(d.replicas)]
	_, node := r.where()
	own := l.layout.deployedConfig(d.role).sub(apiServer)
	at := cluster.Place{
		Server: l.serverFor(node), Node: node, Dir: own.dir, SeenDir: own.seen, Mode: credentials,
		MetricsAddress: "127.0.0.1:0", Unit: r.take,
	}
	if d.streams {
		at.StreamAddress = ":" + portStreams
	}
	return at
}

// serverFor is where a pod on a node finds the API: the load balancer, or the only node itself.
func (ls *links) serverFor(node string) string {
	host := ls.lb.ip
	if host == "" {
		host = ls.machines.address(node)
	}
	return "https://" + host + ":" + portAPIServer
}

// object is the Deployment, of programs below the supervisor. It has no probes: what a program does when it hangs is what is tested. The pods
// of the operator, one after another, append to one log.
func (d *deployment) object(image string) *appsv1.Deployment {
	labels := map[string]string{labelAggregator: d.name}
	own, config := layout{}.deployed(d.role), layout{}.deployedConfig(d.role) // where a pod on another node finds them
	mounts := append(supervised(d.role, own), folder(volumeConfig, config.seen, true))
	var volumes []corev1.Volume
	for _, m := range mounts {
		volumes = append(volumes, m.Volume())
	}
	command := append(supervisedFromFile(own.seen, "$(POD)"), "--user", userOf(d.role))
	if d.role == history.RoleOperator {
		command = append(command, "--log", own.in(logFile(d.role))) // the last --log counts
	}
	container := sidecar.Sidecar{Name: d.role, Image: image, Mounts: mounts, Command: command, SecurityContext: forSupervisor(),
		Env: []corev1.EnvVar{{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}}.Container()
	container.RestartPolicy = nil // that of its pod
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: aggregators, Name: d.name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(len(d.replicas))),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					// Control-plane nodes, and no others that are marked: a drained one must not get the pod back.
					Tolerations:                   []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}},
					Affinity:                      preferring("cp-1"),
					Volumes:                       volumes,
					AutomountServiceAccountToken:  ptr.To(false),
					TerminationGracePeriodSeconds: ptr.To[int64](podGrace),
					Containers:                    []corev1.Container{container},
				},
			},
		},
	}
}

// preferring keeps the pods away from the nodes that most scenarios remove: that a Deployment moves a pod is seldom meant.
func preferring(node string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
		Weight: 100,
		Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}},
	}}}}
}
