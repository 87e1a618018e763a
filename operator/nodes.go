package operator

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
)

// nodes are those that are expected to have a pod, with what the revision of its pod has; reports are left out.
func (o *Operator) nodes(s Seen) (map[string]core.Node, error) {
	nodes, replaced := o.expected()
	if len(nodes) == 0 {
		return nil, errors.New("no node is known that has the API server")
	}
	for _, pod := range sorted[*corev1.Pod](o.sources.pods) {
		n, expected := nodes[pod.Spec.NodeName]
		if !expected || replaced[pod.Spec.NodeName] || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if pod.DeletionTimestamp != nil {
			n.Terminating = n.Terminating || ready(pod)
			nodes[pod.Spec.NodeName] = n
			continue
		}
		c, err := o.installed(pod)
		if err != nil {
			return nil, err
		}
		if n.Unavailable, n.Up = false, ready(pod); n.Up {
			n.Loaded, n.Plugins = s.revisionOf(c.File), map[uint64]config.Plugin{}
			for _, p := range c.Plugins {
				n.Plugins[p.KeyID] = p.Config
			}
		}
		n.Waiting = waiting(pod, c)
		nodes[pod.Spec.NodeName] = n
	}
	return nodes, nil
}

// expected returns the nodes without their pods. A node is replaced while its entry has the UID of the Node that had its name before: a pod of that name
// may be that of the node before, too.
func (o *Operator) expected() (nodes map[string]core.Node, replaced map[string]bool) {
	nodes, replaced = map[string]core.Node{}, map[string]bool{}
	since, uids := map[string]core.Node{}, map[string]string{}
	for _, n := range sorted[*corev1.Node](o.sources.nodes) {
		since[n.Name], uids[n.Name] = core.Node{Unavailable: true, Since: n.CreationTimestamp.Time}, string(n.UID)
	}
	if !o.static() {
		return since, nil
	}
	statuses, _, _ := unstructured.NestedSlice(single(o.sources.operator), "status", "nodeStatuses")
	for _, one := range statuses {
		status, _ := one.(map[string]any)
		if name, _, _ := unstructured.NestedString(status, "nodeName"); name != "" {
			n := since[name]
			n.Unavailable = true
			nodes[name] = n
			uid, _, _ := unstructured.NestedString(status, "nodeUID")
			replaced[name] = uid != "" && uids[name] != "" && uid != uids[name] // those of before the field have none
		}
	}
	return nodes, replaced
}

// installed is what the revision of a pod has. Those from before anything was encrypted have no Secret.
func (o *Operator) installed(pod *corev1.Pod) (c Configuration, err error) {
	number, err := strconv.Atoi(pod.Labels[RevisionLabel])
	if err != nil {
		return c, fmt.Errorf("pod %s/%s: label %s is %q: expected a number", pod.Namespace, pod.Name, RevisionLabel, pod.Labels[RevisionLabel])
	}
	item, there, err := o.sources.revisions.GetByKey(o.Namespace + "/" + RevisionName(number))
	if err != nil {
		return c, err
	}
	if !there {
		for _, one := range o.sources.revisions.List() {
			if newest, is := RevisionNamed(one.(*corev1.Secret).Name); is && newest < number {
				err = fmt.Errorf("revision %d of the pods: %w", number, ErrBehind)
			} else if is {
				return c, nil
			}
		}
		return c, err
	}
	secret := item.(*corev1.Secret)
	return o.configurations.get(secret, func() (Configuration, error) { return ReadConfiguration(secret) })
}

func ready(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// waiting are the plugins of a pod whose containers cannot run.
func waiting(pod *corev1.Pod, c Configuration) map[uint64]core.Waiting {
	all := map[uint64]core.Waiting{}
	for _, s := range pod.Status.InitContainerStatuses {
		id, is := keyOfContainer(s.Name)
		why := WhyWaiting(s)
		if p, there := c.Of(id); is && there && why != "" {
			all[id] = core.Waiting{Config: p, Reason: why}
		}
	}
	return all
}

// cannotRun are the reasons for which a kubelet says that a container cannot run. ErrImagePull is not among them: at the next attempt it becomes
// ImagePullBackOff. An end of a container becomes CrashLoopBackOff when the next one has ended as well.
func cannotRun() []string {
	return []string{"ImagePullBackOff", "CrashLoopBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"}
}

// WhyWaiting is why a container cannot run, in the words of the kubelet and the last ones of the container before; empty: it runs, or the kubelet has
// not tried often enough to say so.
func WhyWaiting(s corev1.ContainerStatus) string {
	w := s.State.Waiting
	if w == nil || !slices.Contains(cannotRun(), w.Reason) {
		return ""
	}
	words := []string{w.Reason}
	if w.Message != "" {
		words = append(words, w.Message)
	}
	if ended := s.LastTerminationState.Terminated; ended != nil && strings.TrimSpace(ended.Message) != "" {
		lines := strings.Split(strings.TrimSpace(ended.Message), "\n")
		words = append(words, lines[len(lines)-1])
	}
	return strings.Join(words, ": ")
}
