package kind

import (
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/lifecycle/sidecar"
)

// uidReporter is the user of the reporter's container, so that its connections can be told from others'.
const uidReporter = 65532

// Names of the volumes.
const (
	volumeState  = "state"
	volumeShared = "shared"
	volumeSocket = "sockets"
)

// folders of the node in every container. The sockets may come and go, so their folder is mounted, not they.
func folders() []sidecar.Mount {
	return []sidecar.Mount{
		{Name: volumeState, HostPath: inNodeState, Type: corev1.HostPathDirectory, MountPath: inNodeState},
		{Name: volumeShared, HostPath: inNodeShared, Type: corev1.HostPathDirectory, MountPath: inNodeShared},
		{Name: volumeSocket, HostPath: inNodeSocket, Type: corev1.HostPathDirectory, MountPath: inNodeSocket},
	}
}

// images of the containers.
type images struct{ plugin, reporter, aggregator, apiServer string }

// spec is what the API server's static pod of a node gets: containers for plugins, the API server's own wiring, the reporter. The
// words of their commands are in files, so a scenario that needs others does not change the pod.
func spec(img images, plugins []string) sidecar.Spec {
	var s sidecar.Spec
	for _, unit := range plugins {
		s.Sidecars = append(s.Sidecars, sidecar.Sidecar{
			Name: containerName(unit), Image: img.plugin, Command: holdCommand(unit, "--command", inNode(commandFile(unit))),
			Mounts: folders(), SecurityContext: &corev1.SecurityContext{RunAsUser: ptr.To[int64](0)},
		})
	}
	s.Sidecars = append(s.Sidecars, sidecar.Sidecar{
		Name: containerName(unitReporter), Image: img.reporter, Command: holdCommand(unitReporter, "--command", inNode(commandFile(unitReporter))),
		Mounts: folders(), AfterAPIServer: true,
		SecurityContext: &corev1.SecurityContext{RunAsUser: ptr.To[int64](uidReporter), RunAsGroup: ptr.To[int64](uidReporter)},
	})
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
		Mounts: folders(), WithoutLiveness: true,
		// An API server of our own node image can be told to look for a changed configuration more often; a stock one ignores it.
		Wrap: append(holdCommand(unitAPIServer, "--env", assets.EnvEncryptionPoll+"="+encryptionPoll.String()), "--"),
	}
	return s
}

// holdCommand runs a unit below hold.
func holdCommand(unit string, more ...string) []string { return holdIn(inNodeState, unit, more...) }

// holdIn is the same with the unit's files in another folder of the node.
func holdIn(dir, unit string, more ...string) []string {
	return append([]string{
		filepath.Join(inNodeShared, holdProgram), "--control", "unix://" + filepath.Join(dir, holdSocket(unit)),
		"--journal", filepath.Join(dir, holdJournal(unit)), "--log", filepath.Join(dir, logFile(unit)),
	}, more...)
}
