package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kmsharness/kmsharness/harness/agent"
)

// pod is a pod of the run that was created, with the connection to its agent.
type pod struct {
	*mirror
	name   string
	ip     string
	tunnel *tunnel
	ended  context.CancelFunc
	runs   sync.WaitGroup
	units  []*unit
}

// awaitPod waits until a pod that was created runs and its agent answers, and compares the clocks.
func (p *controlPlane) awaitPod(ctx context.Context, name string) (*pod, error) {
	client, err := kubernetes.NewForConfig(p.access.config)
	if err != nil {
		return nil, err
	}
	var found *corev1.Pod
	err = until(ctx, "wait for pod "+name, func(ctx context.Context) error {
		found, err = client.CoreV1().Pods(p.run.name).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return running(found)
	})
	if err != nil {
		return nil, err
	}
	t, err := newTunnel(p.access.config, client, p.run.name, name)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.made++ // a successor of the same name has another folder
	dir := filepath.Join(p.dir, fmt.Sprintf("%d", p.made))
	p.mu.Unlock()
	ctxTunnel, cancel := context.WithCancel(context.WithoutCancel(ctx))
	made := &pod{name: name, ip: found.Status.PodIP, tunnel: t, ended: cancel}
	made.mirror = newMirror(dir, &agent.Client{Connect: t.connect, Token: p.token})
	made.runs.Go(func() { t.run(ctxTunnel) })
	if err := made.checkClock(ctx); err != nil {
		made.disconnect()
		return nil, fmt.Errorf("pod %s: %w", name, err)
	}
	made.mirror.start()
	return made, nil
}

// running is an error unless all containers of a pod run.
func running(pod *corev1.Pod) error {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range statuses {
			if w := c.State.Waiting; w != nil && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" {
				return fmt.Errorf("container %s: %s: %.200s", c.Name, w.Reason, w.Message)
			}
		}
	}
	if pod.Status.Phase != corev1.PodRunning {
		return fmt.Errorf("its phase is %s", pod.Status.Phase)
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running == nil {
			return fmt.Errorf("container %s does not run", c.Name)
		}
	}
	return nil
}

// checkClock is an error if the clock of the pod's node is not that of this machine: the checker compares times of both.
func (p *pod) checkClock(ctx context.Context) error {
	var skew, least time.Duration
	for i := range 3 { // the quickest answer says most
		before := time.Now()
		there, err := p.agent.Time(ctx)
		if err != nil {
			return err
		}
		took := time.Since(before)
		if i == 0 || took < least {
			least, skew = took, there.Sub(before.Add(took/2))
		}
	}
	if beyond := skew.Abs() - least/2; beyond > maxSkew {
		return fmt.Errorf("its clock is %v from that of this machine: expected at most %v, since times of both are compared; synchronise them",
			skew.Round(time.Millisecond), maxSkew)
	}
	return nil
}

// disconnect ends the connection to the pod.
func (p *pod) disconnect() {
	p.ended()
	p.mirror.close()
	p.runs.Wait()
}

// until asks until the answer is nil.
func until(ctx context.Context, what string, is func(context.Context) error) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		err := is(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, ctx.Err(), err)
		}
	}
}
