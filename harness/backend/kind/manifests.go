package kind

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator/sidecar"
)

// sampleProgram is the aggregated API server's in its image.
const sampleProgram = assets.SampleAPIServerProgram

// What kubeadm gives the clients of etcd on a node.
const (
	pkiDir         = "/etc/kubernetes/pki/"
	etcdAuthority  = pkiDir + "etcd/ca.crt"
	etcdClientCert = pkiDir + "apiserver-etcd-client.crt"
	etcdClientKey  = pkiDir + "apiserver-etcd-client.key"
)

// podGrace is for supervisors whose programs have ended already.
const podGrace = 2

// deploymentName is that of an aggregated API server on a node.
func deploymentName(s cluster.Stub, node string) string { return s.APIServer + "-" + node }

// deploymentOf is an aggregated API server on a node: its pod and no other, so that one action can take the pod of one node away. The pod is
// tied to the node, where its files are, past the scheduler.
func deploymentOf(s cluster.Stub, img images, node string, ports hostPorts, r podRevision) *appsv1.Deployment {
	labels := map[string]string{labelAPIServer: s.APIServer, labelNode: node}
	dir := filepath.Join(inNodeState, s.APIServer)
	r.images = nil // only a kubelet can be asked why an image of a static pod is missing
	sidecars, server := img.sidecars(dir, r), img.aggregatedServer(dir)
	return &appsv1.Deployment{
		TypeMeta:   typeOf("apps/v1", "Deployment"),
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: deploymentName(s, node)},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}, // both would use the same files
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{labelAPIServer: s.APIServer, labelNode: node, labelRevision: strconv.Itoa(r.number), labelServes: "true"}},
				Spec: corev1.PodSpec{
					NodeName: node, ServiceAccountName: s.APIServer, AutomountServiceAccountToken: ptr.To(false),
					Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, // also a node that was without power for long
					TerminationGracePeriodSeconds: ptr.To[int64](podGrace),
					Volumes:                       volumesFor(append(slices.Clone(sidecars), server)),
					InitContainers:                initContainers(sidecars, ports),
					Containers:                    []corev1.Container{serverContainer(server, ports)},
				},
			},
		},
	}
}

// volumesFor are the volumes that containers mount. The sockets are the pod's own, everything else is the node's.
func volumesFor(containers []sidecar.Sidecar) []corev1.Volume {
	volumes := []corev1.Volume{{Name: sidecar.Prefix + volumeSocket, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	for _, c := range containers {
		for _, m := range c.Mounts {
			if !slices.ContainsFunc(volumes, func(v corev1.Volume) bool { return v.Name == m.Volume().Name }) {
				volumes = append(volumes, m.Volume())
			}
		}
	}
	return volumes
}

// etcdMounts are the files of a client of etcd, which are where they are on the node.
func etcdMounts() (mounts []sidecar.Mount) {
	for _, f := range [][2]string{{"etcd-ca", etcdAuthority}, {"etcd-cert", etcdClientCert}, {"etcd-key", etcdClientKey}} {
		mounts = append(mounts, sidecar.Mount{Name: f[0], HostPath: f[1], Type: corev1.HostPathFile, MountPath: f[1], ReadOnly: true})
	}
	return mounts
}

func initContainers(sidecars []sidecar.Sidecar, ports hostPorts) (all []corev1.Container) {
	for _, s := range sidecars {
		c := s.Container()
		if s.Name == containerName(unitReporter) {
			c.Ports = []corev1.ContainerPort{portOf("metrics", portMetrics, ports.metrics)}
		}
		all = append(all, c)
	}
	return all
}

// aggregatedServer describes the container of an aggregated API server.
func (img images) aggregatedServer(dir string) sidecar.Sidecar {
	return sidecar.Sidecar{
		Name: containerName(unitAPIServer), Image: img.apiServer, Command: supervisedFromFile(dir, unitAPIServer, pollOften()...),
		Mounts: append(folders(dir), etcdMounts()...), SecurityContext: securityOf(0, 0),
	}
}

// serverContainer is the API server's. One that is not ready, because a plugin is away for instance, is taken out of the Service; none is
// restarted by a probe: what hangs is what is tested.
func serverContainer(server sidecar.Sidecar, ports hostPorts) corev1.Container {
	c := server.Container()
	c.RestartPolicy = nil // that of its pod
	c.Ports = []corev1.ContainerPort{portOf("https", portAggregated, ports.apiServer)}
	c.ReadinessProbe = &corev1.Probe{
		PeriodSeconds: 1, TimeoutSeconds: 1, FailureThreshold: 2,
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.Parse(portAggregated), Scheme: corev1.URISchemeHTTPS}},
	}
	return c
}

func portOf(name, port string, host int) corev1.ContainerPort {
	return corev1.ContainerPort{Name: name, ContainerPort: intstr.Parse(port).IntVal, HostPort: int32(host)}
}

// pollOften tells an API server of our own node image to look for a changed encryption configuration more often than once a minute; a stock one
// ignores it.
func pollOften() []string {
	return []string{"--env", assets.EnvEncryptionPoll + "=" + encryptionPoll.String()}
}

const (
	// servicePort is that of an aggregated API server's Service.
	servicePort = 443
	// portAggregated is where it listens in its pod.
	portAggregated = "8443"
	// labelAPIServer and labelNode are the labels of its pods.
	labelAPIServer, labelNode = "kmsharness.io/apiserver", "kmsharness.io/node"
	// labelRevision has the revision of every API server's pod, as OpenShift's installer sets it.
	labelRevision = "revision"
	// labelServes marks every pod of an API server, as OpenShift does.
	labelServes = "apiserver"
)

// hostPorts are those of a node that lead to the pod of an aggregated API server there, ready or not: a Service leads to any, and to ready
// ones only.
type hostPorts struct{ apiServer, metrics int }

// portsOf are those of the i-th aggregated API server, from 0.
func portsOf(i int) hostPorts {
	const firstAPIServer, firstMetrics = 7443, 9465
	return hostPorts{firstAPIServer + i, firstMetrics + i}
}

// objectsOf are what the pods of an aggregated API server need to be there, in an order in which they can be created. OpenShift gives its API
// servers the role cluster-admin.
func objectsOf(s cluster.Stub) []runtime.Object {
	return []runtime.Object{
		&corev1.Namespace{TypeMeta: typeOf("v1", "Namespace"), ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}},
		&corev1.ServiceAccount{TypeMeta: typeOf("v1", "ServiceAccount"), ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.APIServer}},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: typeOf("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"), ObjectMeta: metav1.ObjectMeta{Name: "kmsharness:" + s.APIServer},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: s.APIServer}},
		},
		&corev1.Service{
			TypeMeta: typeOf("v1", "Service"), ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Service},
			Spec: corev1.ServiceSpec{
				Selector: map[string]string{labelAPIServer: s.APIServer},
				Ports:    []corev1.ServicePort{{Name: "https", Port: servicePort, TargetPort: intstr.Parse(portAggregated)}},
			},
		},
	}
}

func typeOf(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

const (
	// uidReporter is the user of the reporter, so that its connections can be told from others', and of the programs of Deployments.
	uidReporter = 65532
	// uidPlugin is the group of a plugin under test, and its user where the harness is root.
	uidPlugin = 65533
)

// userUnderTest is that of a plugin under test. It is the harness's, so that hooks can change its files, unless that is root, which can do so anyway.
func userUnderTest() (user, group int64) {
	if user = int64(os.Getuid()); user == 0 {
		user = uidPlugin
	}
	return user, uidPlugin
}

// userOf is the user of the program of a unit under test, for its supervisor.
func userOf(unit string) string {
	user, group := int64(uidReporter), int64(uidReporter)
	if strings.HasSuffix(unit, suffixUnderTest) {
		user, group = userUnderTest()
	}
	return fmt.Sprintf("%d:%d", user, group)
}

// Names of the volumes.
const (
	volumeState      = "state"
	volumeShared     = "shared"
	volumeSocket     = "sockets"
	volumeConfig     = "config"
	volumeSupervisor = "supervisor"
	volumeAccount    = "account"
)

// Permissions of the plugins' sockets and of their folder. API servers are root, as the plugins are; reporters are not. The plugins have the reporters'
// group, which their sockets get with them.
const (
	socketMode   = "0660"
	socketFolder = 0o755
)

// folder is mounted where it is on the node.
func folder(name, path string, readOnly bool) sidecar.Mount {
	return sidecar.Mount{Name: name, HostPath: path, Type: corev1.HostPathDirectory, MountPath: path, ReadOnly: readOnly}
}

// supervised are what the supervisor of a unit under test mounts: the program that it is, and its files, which the program under test cannot enter.
func supervised(unit string, at podFiles) []sidecar.Mount {
	program := filepath.Join(inNodeShared, supervisorProgram)
	return []sidecar.Mount{
		{Name: volumeSupervisor, HostPath: program, Type: corev1.HostPathFile, MountPath: program, ReadOnly: true}, folder(unit, at.seen, false),
	}
}

// reporterFolders are what the container of a reporter has of its node, and nothing else: what it reads, its supervisor and the sockets. dir is the folder
// of its pod, as the pod sees it.
func reporterFolders(dir string) []sidecar.Mount {
	at := podFiles{seen: dir}
	return append(supervised(unitReporter, at.of(unitReporter)), folder(volumeConfig, at.config().seen, true), folder(volumeSocket, inNodeSocket, true))
}

// folders are what the containers of an API server and of its fake plugins have of their node; dir is that of their pod. Sockets come and go, so their
// folder is mounted, not they.
func folders(dir string) []sidecar.Mount {
	return []sidecar.Mount{folder(volumeState, dir, false), folder(volumeShared, inNodeShared, false), folder(volumeSocket, inNodeSocket, false)}
}

// images of the containers; without a plugin or an operator under test that is an image there is no pluginUnderTest or operatorUnderTest.
type images struct{ plugin, reporter, aggregator, apiServer, pluginUnderTest, operatorUnderTest string }

// of is the image of the Deployments of a role.
func (img images) of(role string) string {
	if role == history.RoleOperator {
		return img.operatorUnderTest
	}
	return img.aggregator
}

// underTest reports whether the pods have containers for a plugin under test.
func (img images) underTest() bool { return img.pluginUnderTest != "" }

// pluginSidecar is a container for a plugin in the pod of an API server.
type pluginSidecar struct {
	unit, image string
	underTest   bool
}

// security of the container: a plugin under test may expect to write to its image.
func (s pluginSidecar) security() *corev1.SecurityContext {
	if s.underTest {
		return forSupervisor()
	}
	return confined(securityOf(0, uidReporter))
}

// mounts of the container: of a plugin under test its own folders, and nothing else. dir is the folder of its pod.
func (s pluginSidecar) mounts(dir string) []sidecar.Mount {
	if !s.underTest {
		return folders(dir)
	}
	at := podFiles{seen: dir}
	all := supervised(s.unit, at.of(s.unit))
	for _, own := range at.underTest("") {
		all = append(all, folder(filepath.Base(own.seen), own.seen, false))
	}
	return all
}

func securityOf(user, group int64) *corev1.SecurityContext {
	return &corev1.SecurityContext{RunAsUser: ptr.To(user), RunAsGroup: ptr.To(group)}
}

// forSupervisor is for the container of a unit under test: its supervisor is root, which starts the program as another user, who stays it.
func forSupervisor() *corev1.SecurityContext {
	s := securityOf(0, 0)
	s.AllowPrivilegeEscalation = ptr.To(false)
	s.Capabilities = &corev1.Capabilities{
		Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"},
	}
	return s
}

// confined takes the right to write to the image's files, as OpenShift's reporters have it.
func confined(s *corev1.SecurityContext) *corev1.SecurityContext {
	s.ReadOnlyRootFilesystem = ptr.To(true)
	return s
}

// pluginSidecars are the containers for plugins of a pod. With a plugin under test there is one for it behind each for a fake plugin.
func (img images) pluginSidecars(units []string) []pluginSidecar {
	var all []pluginSidecar
	for _, unit := range units {
		all = append(all, pluginSidecar{unit: unit, image: img.plugin})
		if img.underTest() {
			all = append(all, pluginSidecar{unitUnderTest(unit), img.pluginUnderTest, true})
		}
	}
	return all
}

// sidecars are the containers for plugins, and for the reporter if there are plugins, of a pod with its files in the folder dir. The words of their commands
// are in files, so other words do not change the pod.
func (img images) sidecars(dir string, r podRevision) (all []sidecar.Sidecar) {
	for _, c := range img.pluginSidecars(r.plugins) {
		one := sidecar.Sidecar{
			Name: containerName(c.unit), Image: c.image, Command: supervisedFromFile(dir, c.unit),
			Mounts: c.mounts(dir), SecurityContext: c.security(), TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		}
		if image, chosen := r.images[c.unit]; chosen && !img.underTest() {
			one.Image, one.StartupProbe = image, answersProbe(c.unit)
		}
		all = append(all, one)
	}
	if len(r.plugins) == 0 {
		return nil
	}
	return append(all, sidecar.Sidecar{
		Name: containerName(unitReporter), Image: img.reporter, Command: supervisedFromFile(dir, unitReporter),
		Mounts: reporterFolders(dir), AfterAPIServer: true, SecurityContext: confined(forSupervisor()),
	})
}

// spec is what the API server's static pod of a node gets: its sidecars and the API server's own wiring. lb is the host of the load balancer, for the
// in-cluster configuration of the reporter. A static pod has no service account, so the harness does with the volume what a kubelet does.
func spec(img images, lb string, r podRevision) sidecar.Spec {
	s := sidecar.Spec{Labels: map[string]string{labelRevision: strconv.Itoa(r.number), labelServes: "true"}, Sidecars: img.sidecars(inNodeState, r)}
	if len(s.Sidecars) > 0 {
		reporter := &s.Sidecars[len(s.Sidecars)-1]
		reporter.Command = supervisedFromFile(inNodeState, unitReporter, "--env", "KUBERNETES_SERVICE_HOST="+lb, "--env", "KUBERNETES_SERVICE_PORT="+portAPIServer)
		reporter.Mounts = append(reporter.Mounts, sidecar.Mount{
			Name: volumeAccount, HostPath: podFiles{seen: inNodeState}.account().seen, Type: corev1.HostPathDirectory, MountPath: cluster.ServiceAccountDir, ReadOnly: true,
		})
	}
	s.APIServer = sidecar.APIServer{
		Flags: []sidecar.Flag{
			{Name: "encryption-provider-config", Value: inNode(encryptionFile)},
			{Name: "encryption-provider-config-automatic-reload", Value: "true"},
			{Name: "audit-policy-file", Value: inNode(auditPolicy)},
			{Name: "audit-log-path", Value: inNode(auditLog)},
			{Name: "audit-log-mode", Value: "blocking"}, // what a client saw is in the log
			{Name: "audit-log-format", Value: "json"},
			{Name: "audit-log-maxsize", Value: "100000"}, // one file: a rotated one would have to be found by its reader
			{Name: "vmodule", Value: "envelope=6"},
		},
		Mounts: folders(inNodeState), WithoutLiveness: true,
		Wrap: append(supervisedIn(inNodeState, unitAPIServer, pollOften()...), "--"),
	}
	return s
}

// answersProbe succeeds when the plugin of a unit answers. Without it a kubelet starts the API server although the plugin has ended at once. A plugin that
// does not answer is not ended for it within two hours.
func answersProbe(unit string) *corev1.Probe {
	const attempts = 2 * 60 * 60
	socket := podFiles{seen: inNodeState}.in(controlSocket(strings.TrimPrefix(unit, unitOfPlugin(""))))
	return &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 10, FailureThreshold: attempts,
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{inImage(cluster.PluginProgram), "status", "--control=unix://" + socket}}}}
}

// supervisedIn runs a unit below the supervisor, with the files of its pod in a folder of the node; the program follows.
func supervisedIn(dir, unit string, more ...string) []string {
	at := podFiles{seen: dir}.of(unit)
	words := []string{
		filepath.Join(inNodeShared, supervisorProgram), "--control", "unix://" + at.in(supervisorSocket(unit)),
		"--journal", at.in(supervisorJournal(unit)), "--log", at.in(logFile(unit)),
	}
	if isUnderTest(unit) {
		words = append(words, "--user", userOf(unit))
	}
	return append(words, more...)
}

// supervisedFromFile is supervisedIn for a program whose words are in a file of the folder.
func supervisedFromFile(dir, unit string, more ...string) []string {
	return append(supervisedIn(dir, unit, more...), "--command", podFiles{seen: dir}.of(unit).in(commandFile(unit)))
}
