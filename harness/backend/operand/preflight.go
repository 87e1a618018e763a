package operand

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// preflightPods runs the checks of pre-flight pods, as kubelet and container would.
type preflightPods struct {
	Options
	sources *sources
}

// step runs the check of the first pod that has no result.
func (p *preflightPods) step(ctx context.Context) error {
	for _, pod := range items[*corev1.Pod](p.sources.preflight) {
		if !p.owns(pod.Namespace) || over(pod) {
			continue
		}
		if err := p.checkNow(ctx, pod); err != nil {
			return fmt.Errorf("pre-flight pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		return nil
	}
	return nil
}

// over reports whether a pod has ended, or is to end.
func over(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// checkNow runs the check of a pod unless the cache is behind.
func (p *preflightPods) checkNow(ctx context.Context, pod *corev1.Pod) error {
	reading, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	now, err := p.Client.CoreV1().Pods(pod.Namespace).Get(reading, pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && over(now) {
		return nil
	}
	if err != nil {
		return err
	}
	return p.check(ctx, now)
}

// owns reports whether the pods of a namespace are of the API server. kube-apiserver's operator may have them anywhere.
func (p *preflightPods) owns(namespace string) bool {
	others := []revision.Component{revision.OpenShiftAPIServer, revision.OAuthAPIServer}
	return namespace == p.Namespace || p.Component == revision.KubeAPIServer && !slices.Contains(others, revision.Component(namespace))
}

func (p *preflightPods) check(ctx context.Context, pod *corev1.Pod) error {
	plugin, err := p.plugin(ctx, pod.Namespace)
	if err != nil {
		return err
	}
	p.Log.Info("a pre-flight check begins", "pod", pod.Namespace+"/"+pod.Name)
	end := p.Pods.Check(ctx, pod, plugin)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	pods := p.Client.CoreV1().Pods(pod.Namespace)
	now, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // the operator no longer waits
	}
	if err != nil {
		return err
	}
	showEnd(now, end)
	if _, err := pods.UpdateStatus(ctx, now, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write its status: %w", err)
	}
	return nil
}

// showEnd makes the status of a pod what a kubelet makes of the end of its container. The conditions of a result are the program's own: where it wrote
// none, the message says why.
func showEnd(pod *corev1.Pod, end corev1.ContainerStateTerminated) {
	pod.Status.Phase, end.Reason = corev1.PodSucceeded, "Completed"
	if end.ExitCode != 0 {
		pod.Status.Phase, end.Reason = corev1.PodFailed, "Error"
	}
	if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == operator.PreflightResult }) {
		end.Message = ""
	}
	status := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &end}}
	if len(pod.Spec.Containers) > 0 {
		status.Name, status.Image = pod.Spec.Containers[0].Name, pod.Spec.Containers[0].Image
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
}

// plugin is what is checked: the newest plugin of the configuration beside the pod, or of the cluster's APIServer configuration where there is none.
func (p *preflightPods) plugin(ctx context.Context, namespace string) (config.Plugin, error) {
	s, err := p.Client.CoreV1().Secrets(namespace).Get(ctx, operator.PreflightSecret, metav1.GetOptions{})
	if err == nil {
		c, err := operator.ReadConfiguration(s)
		if err != nil {
			return config.Plugin{}, err
		}
		if len(c.Plugins) > 0 {
			return c.Plugins[0].Config, nil
		}
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return config.Plugin{}, fmt.Errorf("read its encryption configuration: %w", err)
	}
	u, err := p.Dynamic.Resource(revision.Configurations()).Get(ctx, cr, metav1.GetOptions{})
	if err != nil {
		return config.Plugin{}, fmt.Errorf("read the APIServer configuration: %w", err)
	}
	var a configv1.APIServer
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &a); err != nil {
		return config.Plugin{}, fmt.Errorf("read the APIServer configuration: %w", err)
	}
	w, err := config.Read(&a, config.Options{})
	return w.KMS, err
}
