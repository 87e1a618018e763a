package kind

import (
	"context"
	"fmt"
	"path/filepath"

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

// deployAggregators makes the Deployment through an API server and waits for its pods.
func (p *plane) deployAggregators(ctx context.Context, server string) error {
	client, err := p.typed(server)
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: aggregators}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("namespace of the aggregator: %w", err)
	}
	if _, err := client.AppsV1().Deployments(aggregators).Create(ctx, deployment(p.archives.images.aggregator), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("deploy the aggregator: %w", err)
	}
	for range replicas {
		p.aggregators = append(p.aggregators, &seat{dir: p.layout.shared()})
	}
	return p.seatAll(ctx, client)
}

// typed is an administrator's client of an API server.
func (p *plane) typed(server string) (kubernetes.Interface, error) {
	config, err := p.authority.AdminConfig(server)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// deployment of the aggregator below hold. It has no probes: what it does when it hangs is what is tested.
func deployment(image string) *appsv1.Deployment {
	labels := map[string]string{labelAggregator: aggregators}
	var volumes []corev1.Volume
	var mounts []corev1.VolumeMount
	for _, m := range folders()[:2] {
		volumes = append(volumes, corev1.Volume{Name: m.Name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: m.HostPath}}})
		mounts = append(mounts, corev1.VolumeMount{Name: m.Name, MountPath: m.MountPath})
	}
	unit := unitOfAggregator("$(POD)") // its files are where a pod on another node finds them
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: aggregators},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](replicas),
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
func (p *plane) AggregatorPlace(i int) live.Place {
	s := p.aggregators[(i-1)%len(p.aggregators)]
	server := p.lb.ip
	if server == "" {
		_, node := s.pod()
		server = p.address(node)
	}
	return live.Place{
		Server: "https://" + server + ":" + portAPIServer, Dir: p.layout.shared(), SeenDir: inNodeShared, Mode: credentials,
		MetricsAddress: "127.0.0.1:0",
		Unit: func(identity history.Process, command func(context.Context) (live.Command, error)) live.Unit {
			if err := s.take(wordsOf(command), func(dir, unit string) error { return p.follow(dir, unit, identity) }); err != nil {
				return broken{err}
			}
			return s
		},
	}
}
