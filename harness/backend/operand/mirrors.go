package operand

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// mirrors are the API server's pods as the API has them, which a kubelet would write: one for each node, another one for each revision.
type mirrors struct {
	Options
	nodeUID func(name string) string // of its Node object; empty: there is none
	pods    map[string]mirror
	coming  map[string]Revision // that are being installed, or are the last that were, by node
	shown   []any               // node statuses of the operator's CR
	known   map[string]string   // nodes that have one, with its nodeUID
	highest map[string]int      // current revisions that were shown, by node
	ending  map[string]int      // revisions of the pods that are being deleted, by node
}

// mirror is a pod as it was written last.
type mirror struct {
	revision int
	ready    bool
	waiting  string
	pod      *corev1.Pod
}

func (m mirror) equal(other mirror) bool {
	return m.revision == other.revision && m.ready == other.ready && m.waiting == other.waiting
}

// replace notes that a node's pod gives way to one of another revision, which is not ready.
func (m *mirrors) replace(node string, r Revision) {
	if m.coming == nil {
		m.coming = map[string]Revision{}
	}
	m.coming[node] = r
}

// forget notes that a node has another pod, of whatever revision.
func (m *mirrors) forget(node string) {
	delete(m.coming, node)
	if has, there := m.pods[node]; there {
		has.revision = 0
		m.pods[node] = has
	}
}

// sync writes pods and node statuses where they have changed.
func (m *mirrors) sync(ctx context.Context, nodes map[string]Node, installed map[string]int, newest Revision) error {
	for node := range m.pods {
		if _, there := nodes[node]; there {
			continue
		}
		if err := m.remove(ctx, node); err != nil {
			return err
		}
		delete(m.coming, node)
	}
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		wanted := mirror{revision: installed[node], ready: nodes[node].Up && len(nodes[node].Waiting) == 0, waiting: reasons(nodes[node].Waiting)}
		has, comes := m.coming[node]
		before := 0
		switch {
		case m.Pods.Anew():
			continue
		case has.Number > wanted.revision && m.Surge:
			before, wanted.revision = wanted.revision, has.Number
		case has.Number > wanted.revision:
			wanted.revision, wanted.ready = has.Number, false
		case wanted.revision == 0:
			continue // it has just joined
		case !comes: // it began with the newest
			has = newest
		}
		if err := errors.Join(m.end(ctx, node, before), m.one(ctx, node, wanted, has, nodes[node].Waiting)); err != nil {
			return fmt.Errorf("pod %s/%s: %w", m.Namespace, m.podName(node), err)
		}
	}
	return m.statuses(ctx, nodes, installed, newest.Number)
}

// end shows the pod of before that is being deleted, with its revision; 0: none is. A finalizer keeps it.
func (m *mirrors) end(ctx context.Context, node string, before int) error {
	pods, name := m.Client.CoreV1().Pods(m.Namespace), m.podName(node)+"-ending"
	if m.ending[node] == before {
		return nil
	}
	if m.ending[node] != 0 {
		if _, err := pods.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
			return err
		}
		delete(m.ending, node)
	}
	if before == 0 {
		return nil
	}
	pod := m.podOf(node, before, operator.Configuration{})
	pod.Name, pod.Finalizers = name, []string{"kmsharness.io/serves-on"}
	made, err := pods.Create(ctx, pod, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil {
		return err
	}
	made.Status = m.status(mirror{ready: true}, true, nil)
	if _, err = pods.UpdateStatus(ctx, made, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
		return err
	}
	if m.ending == nil {
		m.ending = map[string]int{}
	}
	m.ending[node] = before
	return m.deletePod(ctx, name)
}

// reasons are why plugins cannot run, on one line.
func reasons(waiting map[uint64]string) string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(waiting)) {
		all = append(all, fmt.Sprintf("%d: %s", id, waiting[id]))
	}
	return strings.Join(all, ", ")
}

func (m *mirrors) remove(ctx context.Context, node string) error {
	err := m.deletePod(ctx, m.podName(node))
	if err == nil {
		delete(m.pods, node)
	}
	return err
}

// deletePod deletes a pod at once, unless it is gone.
func (o Options) deletePod(ctx context.Context, name string) error {
	now := int64(0)
	err := o.Client.CoreV1().Pods(o.Namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s/%s: %w", o.Namespace, name, err)
	}
	return nil
}

// one makes a node's pod what it should be. A pod that somebody else has changed is made anew.
func (m *mirrors) one(ctx context.Context, node string, wanted mirror, r Revision, waiting map[uint64]string) (err error) {
	has, there := m.pods[node]
	if there && has.equal(wanted) {
		return nil
	}
	pods := m.Client.CoreV1().Pods(m.Namespace)
	if !there || has.revision != wanted.revision {
		if err := m.remove(ctx, node); err != nil {
			return err
		}
		has = mirror{revision: wanted.revision}
		if has.pod, err = pods.Create(ctx, m.podOf(node, wanted.revision, r.Configuration), metav1.CreateOptions{FieldManager: fieldManager}); err != nil {
			return err
		}
	}
	pod := has.pod.DeepCopy()
	pod.Status = m.status(wanted, has.ready, waiting)
	if has.pod, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
		delete(m.pods, node)
		return err
	}
	wanted.pod = has.pod
	m.pods[node] = wanted
	return nil
}

// status of a pod. One that was ready still runs.
func (m *mirrors) status(wanted mirror, wasReady bool, waiting map[uint64]string) corev1.PodStatus {
	s := corev1.PodStatus{Phase: corev1.PodPending}
	ready := corev1.ConditionFalse
	if wanted.ready || wasReady {
		s.Phase = corev1.PodRunning
	}
	if wanted.ready {
		ready = corev1.ConditionTrue
	}
	s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.NewTime(m.Clock.Now())}}
	if m.Whole { // guard pods ask the address
		s.PodIP, s.PodIPs = "127.0.0.1", []corev1.PodIP{{IP: "127.0.0.1"}}
	}
	for _, id := range slices.Sorted(maps.Keys(waiting)) {
		reason, message, _ := strings.Cut(waiting[id], ": ")
		s.InitContainerStatuses = append(s.InitContainerStatuses, corev1.ContainerStatus{Name: operator.PluginContainer(id),
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}})
	}
	return s
}

// podOf is a pod in the shape that OpenShift gives it: plugins and reporter are init containers that go on running.
func (m *mirrors) podOf(node string, number int, c operator.Configuration) *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := func(name, image string) corev1.Container {
		return corev1.Container{Name: name, Image: image, RestartPolicy: &always}
	}
	spec := corev1.PodSpec{NodeName: node, HostNetwork: m.Component == revision.KubeAPIServer, Containers: []corev1.Container{{Name: "kube-apiserver", Image: "kube-apiserver"}}}
	for _, p := range c.Plugins {
		spec.InitContainers = append(spec.InitContainers, sidecar(operator.PluginContainer(p.KeyID), p.Config.Image))
	}
	if len(c.Plugins) > 0 {
		spec.InitContainers = append(spec.InitContainers, sidecar("kms-health-reporter", "kms-health-reporter"))
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: m.podName(node), Namespace: m.Namespace,
			Labels: map[string]string{operator.APIServerLabel: "true", "app": string(m.Component), operator.RevisionLabel: strconv.Itoa(number)}},
		Spec: spec,
	}
}

// statuses writes the revisions of the nodes into the operator's CR, as the installer of a static pod operator does.
func (m *mirrors) statuses(ctx context.Context, nodes map[string]Node, installed map[string]int, newest int) error {
	if m.Whole || m.Component != revision.KubeAPIServer {
		return nil // they are the operator's, or it has none
	}
	shown, known, targeted, replaced := []any{}, map[string]string{}, false, false
	if m.highest == nil {
		m.highest = map[string]int{}
	}
	maps.DeleteFunc(m.highest, func(node string, _ int) bool { _, there := nodes[node]; return !there })
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		uid := m.nodeUID(node)
		had, there := m.known[node]
		if had != "" && had != uid {
			delete(m.highest, node)
			replaced = replaced || uid != ""
			continue // the entry of a replaced node goes first: the API would keep its revision in that of the next
		}
		known[node] = uid
		one := map[string]any{"nodeName": node}
		if uid != "" { // a node that joins counts before it has a Node object
			one["nodeUID"] = uid
		}
		if there && (m.highest[node] > 0 || !nodes[node].Unavailable) { // the API refuses revisions in a new entry, and a node that joins has none
			m.highest[node] = max(m.highest[node], installed[node])
			one["currentRevision"] = int64(m.highest[node]) // the API lets it only increase, also when the pod goes back
		}
		if there && installed[node] != newest && !targeted { // one node after another, and the API allows no more
			one["targetRevision"], targeted = int64(newest), true
		}
		shown = append(shown, one)
	}
	if fmt.Sprint(shown) == fmt.Sprint(m.shown) {
		return nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": m.Resource.GroupVersion().String(), "kind": m.Kind, "metadata": map[string]any{"name": cr},
		"status": map[string]any{"latestAvailableRevision": int64(newest), "nodeStatuses": shown},
	}}
	if _, err := m.Dynamic.Resource(m.Resource).ApplyStatus(ctx, cr, u, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
		return fmt.Errorf("write the node statuses of %s/%s: %w", m.Resource.Resource, cr, err)
	}
	if m.shown, m.known = shown, known; replaced { // at once: an operator does not wait for a node without an entry
		return m.statuses(ctx, nodes, installed, newest)
	}
	return nil
}
