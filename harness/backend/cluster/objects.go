package cluster

import (
	"fmt"
	"path"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/e2e-framework/klient/k8s"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/agent"
	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// Folders of the containers.
const (
	folder       = "/var/lib/kmsharness"     // of the agent; the volumes are below it
	folderBin    = "/var/lib/kmsharness-bin" // the agent's program, for containers of other images
	folderSecret = "/etc/kmsharness-agent"
)

// Volumes of the pods. The agent sees all; each program under test sees its own, so that none can write another's journal.
const (
	volumePlugins    = "plugins"
	volumeReporter   = "reporter"
	volumeAggregator = "aggregator"
	volumeKMS        = "kms"
	volumeSockets    = "sockets" // of the plugins, at contract.SocketDir
	volumeBin        = "bin"
	volumeSecret     = "secret"
	volumeAccount    = "account"
)

const (
	hub = "hub" // the pod of the aggregators and the remote KMS, and the name of its connection to the API server in a history

	account    = "agent" // the agents' service account, and the secret
	accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

	unitReporter = "reporter"
	unitKMS      = "kms"
	portKMS      = "9444"
	portMetrics  = "9797"

	// nonRoot is the user and the group of all containers: the images' own.
	nonRoot = 65532
	// podGrace is how long a pod that is deleted may take.
	podGrace = 1
)

func unitPlugin(i int) string     { return "plugin-" + strconv.Itoa(i) }
func unitAggregator(i int) string { return "aggregator-" + strconv.Itoa(i) }

// inPod is a file of a volume as the containers see it.
func inPod(volume, name string) string { return path.Join(folder, volume, name) }

// meta is that of an object of the run; namespace is empty for one of the cluster.
func (r run) meta(name, namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: r.labels()}
}

// agentObjects are what the agents need: an account that may do nothing but impersonate the programs under test, and their secret.
func (r run) agentObjects(secret map[string][]byte) []k8s.Object {
	role := r.impersonation(nil)
	return []k8s.Object{
		&corev1.ServiceAccount{ObjectMeta: r.meta(account, r.name), AutomountServiceAccountToken: ptr.To(false)},
		&corev1.Secret{ObjectMeta: r.meta(account, r.name), Data: secret},
		role,
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: r.meta(role.Name, ""),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: r.name}},
		},
	}
}

// impersonation is the role by which an agent passes requests on as those of their senders: the aggregator, and the reporters of the nodes
// of scenarios.
func (r run) impersonation(nodes []string) *rbacv1.ClusterRole {
	users := []string{contract.AggregatorIdentity}
	for _, n := range nodes {
		users = append(users, contract.ReporterIdentity(n))
	}
	return &rbacv1.ClusterRole{ObjectMeta: r.meta("kmsharness-agent"+r.suffix(), ""), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"users"}, Verbs: []string{"impersonate"}, ResourceNames: users},
		{APIGroups: []string{""}, Resources: []string{"groups"}, Verbs: []string{"impersonate"}, ResourceNames: []string{contract.ReporterGroup}},
	}}
}

// images of the containers.
type podImages struct{ agent, plugin, reporter, aggregator string }

func imagesOf(p Placing) podImages {
	return podImages{agent: p.image(agent.Program), plugin: p.image(live.PluginProgram), reporter: p.image("kms-health-reporter"), aggregator: p.image("kms-health-aggregator")}
}

// nodePod is the pod of a node of a scenario, on a node of the cluster.
func (r run) nodePod(name, node, on string, img podImages) *corev1.Pod {
	p := r.pod(name, on, img, volumePlugins, volumeReporter)
	p.Labels[labelNode], p.Labels[labelPart] = node, partNode
	sockets := corev1.VolumeMount{Name: volumeSockets, MountPath: contract.SocketDir}
	p.Spec.Volumes = append(p.Spec.Volumes, emptyDir(volumeSockets))
	for i := range maxPlugins {
		p.Spec.Containers = append(p.Spec.Containers, supervised(img.plugin, volumePlugins, unitPlugin(i+1), sockets))
	}
	p.Spec.Containers = append(p.Spec.Containers, supervised(img.reporter, volumeReporter, unitReporter, sockets))
	return p
}

// hubPod is the pod of the aggregators and the remote KMS.
func (r run) hubPod(on string, img podImages) *corev1.Pod {
	p := r.pod(hub, on, img, volumeAggregator, volumeKMS)
	for i := range maxAggregators {
		p.Spec.Containers = append(p.Spec.Containers, supervised(img.aggregator, volumeAggregator, unitAggregator(i+1)))
	}
	p.Spec.Containers = append(p.Spec.Containers, supervised(img.plugin, volumeKMS, unitKMS))
	return p
}

// pod is one with an agent, and with volumes of its programs.
func (r run) pod(name, on string, img podImages, volumes ...string) *corev1.Pod {
	bin := corev1.VolumeMount{Name: volumeBin, MountPath: folderBin}
	mounts := []corev1.VolumeMount{mountOf(agent.Folder), {Name: volumeSecret, MountPath: folderSecret, ReadOnly: true}, {Name: volumeAccount, MountPath: accountDir, ReadOnly: true}}
	all := []corev1.Volume{emptyDir(volumeBin), emptyDir(agent.Folder), accountVolume(),
		{Name: volumeSecret, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: account}}}}
	for _, v := range volumes {
		all, mounts = append(all, emptyDir(v)), append(mounts, mountOf(v))
	}
	return &corev1.Pod{
		ObjectMeta: r.meta(name, r.name),
		Spec: corev1.PodSpec{
			ServiceAccountName: account, AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To[int64](podGrace),
			Affinity:                      onNode(on),
			Tolerations:                   []corev1.Toleration{{Key: labelControlPlane, Operator: corev1.TolerationOpExists}},
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](nonRoot), RunAsGroup: ptr.To[int64](nonRoot),
				FSGroup: ptr.To[int64](nonRoot), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Volumes: all,
			InitContainers: []corev1.Container{{Name: "install", Image: img.agent, ImagePullPolicy: corev1.PullIfNotPresent, SecurityContext: restricted(),
				Command: []string{"/" + agent.Program, "install", folderBin}, VolumeMounts: []corev1.VolumeMount{bin}}},
			Containers: []corev1.Container{{Name: "agent", Image: img.agent, ImagePullPolicy: corev1.PullIfNotPresent, SecurityContext: restricted(),
				Command: []string{"/" + agent.Program, "serve", "--dir", folder, "--secret", folderSecret}, VolumeMounts: mounts}},
		},
	}
}

// supervised is a container whose program the supervisor runs, with its files in a volume.
func supervised(image, volume, unit string, mounts ...corev1.VolumeMount) corev1.Container {
	u := &unitFiles{volume, unit}
	return corev1.Container{
		Name: unit, Image: image, ImagePullPolicy: corev1.PullIfNotPresent, SecurityContext: restricted(),
		Command: []string{path.Join(folderBin, agent.Program), "supervise", "--control", "unix://" + u.in(socketFile), "--journal", u.in(journalFile),
			"--log", u.in(logFile), "--command", u.in(commandFile)},
		VolumeMounts: append([]corev1.VolumeMount{mountOf(volume), {Name: volumeBin, MountPath: folderBin, ReadOnly: true}}, mounts...),
	}
}

// unitFiles names the files of a unit.
type unitFiles struct{ volume, unit string }

// name is that of the agent; in is the path in the containers.
func (u unitFiles) name(kind string) string { return u.volume + "/" + u.unit + kind }
func (u unitFiles) in(kind string) string   { return path.Join(folder, u.name(kind)) }

func emptyDir(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

func mountOf(volume string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: volume, MountPath: path.Join(folder, volume)}
}

// accountVolume is what a pod usually finds of its service account; here the agent alone does.
func accountVolume() corev1.Volume {
	const hour = 3600
	return corev1.Volume{Name: volumeAccount, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To[int64](hour)}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
	}}}}
}

// restricted is what the Pod Security Standard of that name demands.
func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
}

// onNode binds a pod to a node of the cluster by its name.
func onNode(name string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}}},
	}}}
}

// labelControlPlane is on control-plane nodes, and the key of their taint.
const labelControlPlane = "node-role.kubernetes.io/control-plane"

// place gives each of count nodes of a scenario a node of the cluster: control-plane nodes if there are any that are ready, else other
// nodes; one may get several.
func place(nodes []corev1.Node, count int) ([]string, error) {
	var control, others []string
	for _, n := range nodes {
		_, isControl := n.Labels[labelControlPlane]
		switch {
		case n.Spec.Unschedulable || !ready(n):
		case isControl:
			control = append(control, n.Name)
		case len(n.Spec.Taints) == 0:
			others = append(others, n.Name)
		}
	}
	if len(control) == 0 {
		control = others
	}
	if len(control) == 0 {
		return nil, fmt.Errorf("none of the %d nodes of the cluster can run pods: expected one that is ready and schedulable", len(nodes))
	}
	names := make([]string, count)
	for i := range names {
		names[i] = control[i%len(control)]
	}
	return names, nil
}

func ready(n corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
