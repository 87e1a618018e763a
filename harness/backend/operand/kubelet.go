package operand

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// kubelet sees what becomes of the pods that a whole operator creates: installer, pruner and guard. Where no kubelets run, it does what they would do with
// these pods, and with the condition of the nodes that the operator looks at.
type kubelet struct {
	Options
	ready map[string]corev1.ConditionStatus // what was written, by node
}

// labels of pods that an operator creates, by the label "app".
const (
	appInstaller = "installer"
	appPruner    = "pruner"
	appGuard     = "guard"
)

// installedRevisions are the highest revisions that installer pods have installed, by node: they ended with success. One whose revision cannot be read is an
// error, because its revision would never be rolled out.
func installedRevisions(pods []corev1.Pod) (map[string]int, error) {
	all := map[string]int{}
	for n := range pods {
		pod := &pods[n]
		if pod.Labels["app"] != appInstaller || pod.Status.Phase != corev1.PodSucceeded || pod.DeletionTimestamp != nil {
			continue
		}
		revision, err := installedRevision(pod)
		if err != nil {
			return nil, err
		}
		all[pod.Spec.NodeName] = max(all[pod.Spec.NodeName], revision)
	}
	return all, nil
}

// installedRevision is the revision that an installer pod installs.
func installedRevision(pod *corev1.Pod) (int, error) {
	for _, c := range pod.Spec.Containers {
		for _, arg := range c.Args {
			if text, is := strings.CutPrefix(arg, "--revision="); is {
				revision, err := strconv.Atoi(text)
				if err != nil || revision < 1 {
					return 0, fmt.Errorf("installer pod %s: %s: expected a number above 0", pod.Name, arg)
				}
				return revision, nil
			}
		}
	}
	return 0, fmt.Errorf("installer pod %s: expected an argument --revision=N", pod.Name)
}

// showReady writes the condition Ready of nodes where it has changed. Of a node whose kubelet does not run it is Unknown.
func (k *kubelet) showReady(ctx context.Context, nodes map[string]Node) error {
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		ready := corev1.ConditionTrue
		if nodes[name].Unavailable {
			ready = corev1.ConditionUnknown
		}
		if k.ready[name] == ready {
			continue
		}
		patch, err := json.Marshal(corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready,
			LastTransitionTime: metav1.NewTime(k.Clock.Now())}}}})
		if err == nil {
			_, err = k.Client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}, "status")
		}
		if err != nil {
			return fmt.Errorf("write the condition Ready of node %s: %w", name, err)
		}
		k.ready[name] = ready
	}
	return nil
}

// step gives the revisions that nodes are to have. Before that it does what kubelets would, if there are none.
func (k *kubelet) step(ctx context.Context, nodes map[string]Node) (map[string]int, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := k.Client.CoreV1().Pods(k.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app in (" + appInstaller + "," + appPruner + "," + appGuard + ")"})
	if err != nil {
		return nil, fmt.Errorf("list the operator's pods: %w", err)
	}
	if k.Pods.Anew() {
		return installedRevisions(list.Items)
	}
	if err := k.showReady(ctx, nodes); err != nil {
		return nil, err
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if n, there := nodes[pod.Spec.NodeName]; !there || n.Unavailable { // its kubelet does not run
			continue
		}
		if err := k.run(ctx, pod); err != nil {
			return nil, err
		}
	}
	return installedRevisions(list.Items)
}

// run does what becomes of a pod next: it is deleted, or ends with success, or a guard becomes ready.
func (k *kubelet) run(ctx context.Context, pod *corev1.Pod) error {
	guard := pod.Labels["app"] == appGuard
	switch {
	case pod.DeletionTimestamp != nil:
		return k.deletePod(ctx, pod.Name)
	case guard && pod.Status.Phase != corev1.PodRunning:
		return k.write(ctx, pod, corev1.PodRunning, corev1.ConditionTrue)
	case !guard && !over(pod):
		return k.write(ctx, pod, corev1.PodSucceeded, corev1.ConditionFalse)
	}
	return nil
}

// write sets the status of a pod that may be gone by now.
func (k *kubelet) write(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase, ready corev1.ConditionStatus) error {
	now := metav1.NewTime(k.Clock.Now())
	pod.Status.Phase, pod.Status.StartTime = phase, &now
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: now}}
	_, err := k.Client.CoreV1().Pods(k.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("write the status of pod %s: %w", pod.Name, err)
	}
	return nil
}
