package operand

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/staticpods"
)

// preflightPods runs the checks of pre-flight pods, as kubelet and container would.
type preflightPods struct{ Options }

// step runs the check of the first pod that has no result.
func (p *preflightPods) step(ctx context.Context) error {
	listing, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := p.Client.CoreV1().Pods("").List(listing, metav1.ListOptions{LabelSelector: staticpods.PreflightSelector})
	if err != nil {
		return fmt.Errorf("list the pre-flight pods: %w", err)
	}
	for n := range list.Items {
		pod := &list.Items[n]
		if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if err := p.check(ctx, pod); err != nil {
			return fmt.Errorf("pre-flight pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		return nil
	}
	return nil
}

func (p *preflightPods) check(ctx context.Context, pod *corev1.Pod) error {
	plugin, err := p.plugin(ctx, pod.Namespace)
	if err != nil {
		return err
	}
	p.Log.Info("a pre-flight check begins", "pod", pod.Namespace+"/"+pod.Name)
	result := p.Pods.Check(ctx, plugin, "")
	if ctx.Err() != nil {
		return ctx.Err()
	}
	status, phase, reason := corev1.ConditionTrue, corev1.PodSucceeded, "Succeeded"
	if !result.OK {
		status, phase, reason = corev1.ConditionFalse, corev1.PodFailed, "Failed"
	}
	now := metav1.NewTime(p.Clock.Now())
	pod.Status.Phase = phase
	pod.Status.Conditions = append(pod.Status.Conditions,
		corev1.PodCondition{Type: staticpods.PreflightResult, Status: status, Reason: reason, Message: result.Message, LastTransitionTime: now},
		corev1.PodCondition{Type: staticpods.PreflightConfig, Status: corev1.ConditionTrue, Message: pod.Annotations[staticpods.PreflightHash], LastTransitionTime: now})
	if result.KEK != "" {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: staticpods.PreflightRemoteKey, Status: corev1.ConditionTrue, Message: result.KEK, LastTransitionTime: now})
	}
	if _, err := p.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write its status: %w", err)
	}
	return nil
}

// plugin is what is checked: the newest plugin of the configuration beside the pod, or of the cluster's APIServer configuration where there is none.
func (p *preflightPods) plugin(ctx context.Context, namespace string) (config.Plugin, error) {
	s, err := p.Client.CoreV1().Secrets(namespace).Get(ctx, staticpods.PreflightSecret, metav1.GetOptions{})
	if err == nil {
		c, err := staticpods.ReadConfiguration(s)
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
	u, err := p.Dynamic.Resource(schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "apiservers"}).Get(ctx, cr, metav1.GetOptions{})
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
