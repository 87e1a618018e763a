package kind

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	containers "github.com/kmsharness/kmsharness/ci/images"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// provide makes an image in the store of a node what a scenario has made of it: this project's plugin, one that does not run, or missing.
func (a archives) provide(ctx context.Context, c container, image live.PluginImage) error {
	source := a.images.plugin
	switch image.Fault {
	case scenario.ImageMissing:
		if _, err := c.ctr(ctx, "images", "rm", image.Reference); err != nil {
			return fmt.Errorf("remove the image %s: %w", image.Reference, err)
		}
		return nil
	case scenario.ImageArchitecture, scenario.ImageCrashLoop:
		file, name, err := a.broken(ctx, image.Fault)
		if err == nil {
			err = c.importArchive(ctx, file, "--all-platforms") // also of one for another machine
		}
		if err != nil {
			return fmt.Errorf("import an image of a plugin with %s: %w", image.Fault, err)
		}
		source = name
	}
	if _, err := c.ctr(ctx, "images", "tag", "--force", containers.Registry+source, image.Reference); err != nil {
		return fmt.Errorf("tag the image %s: %w", image.Reference, err)
	}
	return nil
}

// broken makes the archive of an image whose program does not run, for a fault.
func (a archives) broken(ctx context.Context, fault string) (file, name string, err error) {
	d, is := definition("plugin"), definition("plugin")
	if fault == scenario.ImageCrashLoop {
		is = definition("reporter") // a program that does not know a plugin's flags, and ends
	}
	path, err := a.programs.Find(ctx, is.Program)
	if err != nil {
		return "", "", err
	}
	text, err := os.ReadFile(path)
	if err == nil && fault == scenario.ImageArchitecture {
		text, err = foreign(text)
	}
	if err != nil {
		return "", "", err
	}
	d.Name, d.Repository, d.Description = d.Name+"-"+fault, d.Repository+"-"+fault, "A plugin that does not run: "+fault
	return writeArchiveOf(text, a.dir, d)
}

// definition is that of an image of this project, which exists.
func definition(name string) containers.Definition {
	all := containers.Definitions()
	return all[slices.IndexFunc(all, func(d containers.Definition) bool { return d.Name == name })]
}

// foreign is the header of a program for another machine, which the kernel refuses with "exec format error". Its bytes are in the order that machine
// does not have, so that no emulator takes it for one of its programs.
func foreign(program []byte) ([]byte, error) {
	const size, machine, programs, sections, counts = 64, 18, 32, 40, 56 // offsets in a header of 64 bits
	if len(program) < size || elf.Class(program[elf.EI_CLASS]) != elf.ELFCLASS64 {
		return nil, errors.New("it is no program of 64 bits")
	}
	header := slices.Clone(program[:size])
	header[elf.EI_DATA] = byte(elf.ELFDATA2LSB)
	binary.LittleEndian.PutUint16(header[machine:], uint16(elf.EM_S390))
	clear(header[programs : sections+8])
	clear(header[counts:])
	return header, nil
}

const (
	// runsFor is how long a container must run to be one that starts: one that is to end does so at once.
	runsFor = 2 * time.Second
	// trialPoll is how often the kubelet is asked about a container that starts.
	trialPoll = 500 * time.Millisecond
	trial     = "kms-preflight-check"
	// trialPlugin is its container. What a plugin's container does is not told as a death that no action asked for.
	trialPlugin = "kms-" + history.RolePlugin
)

// TryImage implements live.Roller.
func (p *controlPlane) TryImage(ctx context.Context, n *live.Node, image live.PluginImage) (made live.Pod, err error) {
	if err := p.archives.provide(ctx, p.container(n.Name), image); err != nil {
		return made, err
	}
	through, err := p.donor("")
	if err != nil {
		return made, err
	}
	client, err := typed(p.Authority, through.Server.URL())
	if err != nil {
		return made, err
	}
	pods := client.CoreV1().Pods(p.podNamespace())
	pod, err := pods.Create(ctx, trialPod(n.Name, image), metav1.CreateOptions{})
	if err != nil {
		return made, fmt.Errorf("create a pod: %w", err)
	}
	defer func() {
		deleting := pods.Delete(context.WithoutCancel(ctx), pod.Name, metav1.DeleteOptions{})
		err = errors.Join(err, deleting)
	}()
	made = live.Pod{Namespace: pod.Namespace, Name: pod.Name}
	err = until(ctx, trialPoll, "wait for the container", func(ctx context.Context) error {
		is, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		made.Waiting, err = outcomeOf(is.Status.ContainerStatuses, time.Now())
		return err
	})
	return made, err
}

// outcomeOf are the containers that cannot run, of a pod that was made to see whether its containers run; an error: that is not clear yet.
func outcomeOf(all []corev1.ContainerStatus, now time.Time) (waiting []live.WaitingContainer, unclear error) {
	if len(all) == 0 {
		return nil, errors.New("the kubelet has not seen the pod")
	}
	for _, s := range all {
		if why := whyWaiting(s); why != "" {
			waiting = append(waiting, live.WaitingContainer{Name: s.Name, Reason: why})
			continue
		}
		if r := s.State.Running; r == nil || now.Sub(r.StartedAt.Time) < runsFor+time.Second { // StartedAt has whole seconds
			unclear = fmt.Errorf("container %s neither runs nor waits", s.Name)
		}
	}
	if len(waiting) > 0 {
		return waiting, nil
	}
	return nil, unclear
}

// trialPod is a pod on a node with a plugin of an image, and nothing else.
func trialPod(node string, image live.PluginImage) *corev1.Pod {
	const keyID = "1"
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: trial + "-"},
		Spec: corev1.PodSpec{
			NodeName: node, HostNetwork: true, AutomountServiceAccountToken: ptr.To(false), TerminationGracePeriodSeconds: ptr.To[int64](1),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Volumes:     []corev1.Volume{{Name: volumeSocket, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			Containers: []corev1.Container{{
				Name: trialPlugin, Image: image.Reference, ImagePullPolicy: corev1.PullIfNotPresent, SecurityContext: confined(securityOf(0, uidReporter)),
				Args:                     []string{"serve", "--listen=" + contract.SocketPath(inNodeSocket, keyID)},
				VolumeMounts:             []corev1.VolumeMount{{Name: volumeSocket, MountPath: inNodeSocket, ReadOnly: image.Fault == scenario.ImageReadOnly}},
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			}},
		},
	}
}
