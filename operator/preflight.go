package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/preflight"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// checkedKey is the keyID of a plugin that is checked: a key of its own it gets only when it has passed.
const checkedKey = 1

// endTimeout bounds the removal of what was made for a check, also of an operator that ends.
const endTimeout = time.Second

// preflightPod makes the checks of plugins.
type preflightPod struct{ *Operator }

// result checks a plugin by a pod with it, whose conditions have the result, and a Secret with its configuration.
func (o preflightPod) result(ctx context.Context, p config.Plugin, hash string) core.Preflight {
	result, err := o.run(ctx, p, hash)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if err = errors.Join(err, o.end(ending)); err != nil {
		return core.Preflight{Hash: hash, Message: contract.SafeDetail(err.Error())}
	}
	return result
}

func (o preflightPod) run(ctx context.Context, p config.Plugin, hash string) (result core.Preflight, err error) {
	if err := o.end(ctx); err != nil {
		return result, err
	}
	data, err := o.pluginConfig(revision.Plugin{KeyID: checkedKey, Config: p})
	if err != nil {
		return result, fmt.Errorf("configuration of the check: %w", err)
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: o.Namespace, Name: name, Labels: map[string]string{"app": PreflightApp}}
	}
	secret := &corev1.Secret{ObjectMeta: meta(PreflightSecret), Data: data}
	if _, err := o.client.CoreV1().Secrets(o.Namespace).Create(ctx, secret, metav1.CreateOptions{FieldManager: fieldManager}); err != nil {
		return result, fmt.Errorf("create secret %s/%s: %w", o.Namespace, PreflightSecret, err)
	}
	pod := &corev1.Pod{ObjectMeta: meta(PreflightName), Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "kms-preflight-check", Image: p.Image, Args: []string{"--config-hash=" + hash}}}}}
	pod.Annotations = map[string]string{PreflightHash: hash}
	if _, err = o.client.CoreV1().Pods(o.Namespace).Create(ctx, pod, metav1.CreateOptions{FieldManager: fieldManager}); err != nil {
		return result, fmt.Errorf("create pod %s/%s: %w", o.Namespace, PreflightName, err)
	}
	why := errors.New("the pod has no result")
	err = wait.PollUntilContextCancel(ctx, poll, false, func(ctx context.Context) (bool, error) {
		now, err := o.client.CoreV1().Pods(o.Namespace).Get(ctx, PreflightName, metav1.GetOptions{})
		if err != nil {
			why = err
			return false, nil
		}
		var done bool
		result, done = resultOf(now, hash)
		return done, nil
	})
	if err != nil {
		return result, fmt.Errorf("pod %s/%s: %w: %w", o.Namespace, PreflightName, err, why)
	}
	return result, nil
}

// resultOf is what the conditions of a pre-flight pod say of a configuration; done: they say something.
func resultOf(pod *corev1.Pod, hash string) (result core.Preflight, done bool) {
	said := map[corev1.PodConditionType]corev1.PodCondition{}
	for _, c := range pod.Status.Conditions {
		said[c.Type] = c
	}
	c, done := said[PreflightResult]
	if done = done && said[PreflightConfig].Message == hash; !done {
		return core.Preflight{Hash: hash, Message: "the pod of the check has ended without a result: " + lastWords(pod)}, pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	}
	result = core.Preflight{Hash: hash, OK: c.Status == corev1.ConditionTrue, KEK: said[PreflightRemoteKey].Message, Message: c.Message}
	if wrong := preflight.CheckKEK(result.KEK); wrong != nil {
		result.KEK = ""
		if result.OK { // a key for it would be refused much later
			result.OK, result.Message = false, "the check has passed, and "+wrong.Error()
		}
	}
	return result, true
}

// lastWords are what a pod that has failed says of its end.
func lastWords(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if end := c.State.Terminated; end != nil {
			return contract.SafeDetail(cmp.Or(end.Message, end.Reason, fmt.Sprintf("exit code %d", end.ExitCode)))
		}
	}
	return contract.SafeDetail(cmp.Or(pod.Status.Message, pod.Status.Reason, "its status has no reason"))
}

// PreflightConditions are those of a pre-flight pod that has a result.
func PreflightConditions(p core.Preflight, now metav1.Time) []corev1.PodCondition {
	result := corev1.PodCondition{Type: PreflightResult, Status: corev1.ConditionTrue, Reason: "Succeeded", Message: p.Message, LastTransitionTime: now}
	if !p.OK {
		result.Status, result.Reason = corev1.ConditionFalse, "Failed"
	}
	all := []corev1.PodCondition{result, {Type: PreflightConfig, Status: corev1.ConditionTrue, Message: p.Hash, LastTransitionTime: now}}
	if p.KEK != "" {
		all = append(all, corev1.PodCondition{Type: PreflightRemoteKey, Status: corev1.ConditionTrue, Message: p.KEK, LastTransitionTime: now})
	}
	return all
}

// IsPreflight reports whether a condition of a pod is one of PreflightConditions.
func IsPreflight(c corev1.PodCondition) bool {
	return c.Type == PreflightResult || c.Type == PreflightConfig || c.Type == PreflightRemoteKey
}

// end removes pod and Secret of a check.
func (o preflightPod) end(ctx context.Context) error {
	now := int64(0)
	err := o.client.CoreV1().Pods(o.Namespace).Delete(ctx, PreflightName, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s/%s: %w", o.Namespace, PreflightName, err)
	}
	err = o.client.CoreV1().Secrets(o.Namespace).Delete(ctx, PreflightSecret, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete secret %s/%s: %w", o.Namespace, PreflightSecret, err)
	}
	return nil
}
