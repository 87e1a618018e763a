package operand

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/staticpods"
)

// mirrors are the API server's pods as the API has them, which a kubelet would write: one for each node, another one for each revision.
type mirrors struct {
	Options

	mu      sync.Mutex
	pods    map[string]mirror
	coming  map[string]int                      // revisions that are being installed, by node
	have    map[string]staticpods.Configuration // of these revisions
	shown   []any                               // node statuses of the operator's CR
	known   map[string]bool                     // nodes that have one
	highest map[string]int                      // current revisions that were shown, by node
}

type mirror struct {
	revision int
	ready    bool
}

// replace notes that a node's pod gives way to one of another revision, which is not ready.
func (m *mirrors) replace(node string, revision int, c staticpods.Configuration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.coming == nil {
		m.coming, m.have = map[string]int{}, map[string]staticpods.Configuration{}
	}
	m.coming[node], m.have[node] = revision, c
}

// sync writes pods and node statuses where they have changed.
func (m *mirrors) sync(ctx context.Context, nodes map[string]core.Node, installed map[string]int, newest int, c staticpods.Configuration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for node := range m.pods {
		if _, there := nodes[node]; there {
			continue
		}
		if err := m.remove(ctx, node); err != nil {
			return err
		}
		delete(m.have, node)
	}
	if m.Pods.Anew() {
		return m.statuses(ctx, nodes, installed, newest)
	}
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		wanted := mirror{installed[node], nodes[node].Up}
		if coming := m.coming[node]; coming > wanted.revision {
			wanted = mirror{coming, false}
		}
		if wanted.revision == 0 {
			continue // it has just joined
		}
		has, installed := m.have[node]
		if !installed { // it began with the newest
			has = c
		}
		if err := m.one(ctx, node, wanted, has); err != nil {
			return fmt.Errorf("pod %s/%s: %w", Namespace, PodName(node), err)
		}
	}
	return m.statuses(ctx, nodes, installed, newest)
}

func (m *mirrors) remove(ctx context.Context, node string) error {
	now := int64(0)
	err := m.Client.CoreV1().Pods(Namespace).Delete(ctx, PodName(node), metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s/%s: %w", Namespace, PodName(node), err)
	}
	delete(m.pods, node)
	return nil
}

// one makes a node's pod what it should be.
func (m *mirrors) one(ctx context.Context, node string, wanted mirror, c staticpods.Configuration) error {
	has, there := m.pods[node]
	if there && has == wanted {
		return nil
	}
	pods := m.Client.CoreV1().Pods(Namespace)
	if !there || has.revision != wanted.revision {
		if err := m.remove(ctx, node); err != nil {
			return err
		}
		if _, err := pods.Create(ctx, podOf(node, wanted.revision, c), metav1.CreateOptions{FieldManager: fieldManager}); err != nil {
			return err
		}
	}
	pod, err := pods.Get(ctx, PodName(node), metav1.GetOptions{})
	if err != nil {
		return err
	}
	pod.Status.Phase = corev1.PodPending
	ready := corev1.ConditionFalse
	if wanted.ready || has == (mirror{wanted.revision, true}) { // one that was ready still runs
		pod.Status.Phase = corev1.PodRunning
	}
	if wanted.ready {
		ready = corev1.ConditionTrue
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.NewTime(m.Clock.Now())}}
	if m.Whole { // guard pods ask the address
		pod.Status.PodIP, pod.Status.PodIPs = "127.0.0.1", []corev1.PodIP{{IP: "127.0.0.1"}}
	}
	if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
		return err
	}
	m.pods[node] = wanted
	return nil
}

// podOf is a static pod in the shape that OpenShift gives it: plugins and reporter are init containers that go on running.
func podOf(node string, revision int, c staticpods.Configuration) *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := func(name, image string) corev1.Container {
		return corev1.Container{Name: name, Image: image, RestartPolicy: &always}
	}
	spec := corev1.PodSpec{NodeName: node, HostNetwork: true, Containers: []corev1.Container{{Name: "kube-apiserver", Image: "kube-apiserver"}}}
	for _, p := range c.Plugins {
		spec.InitContainers = append(spec.InitContainers, sidecar("vault-kms-plugin-"+strconv.FormatUint(p.KeyID, 10), p.Config.Image))
	}
	if len(c.Plugins) > 0 {
		spec.InitContainers = append(spec.InitContainers, sidecar("kms-health-reporter", "kms-health-reporter"))
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: PodName(node), Namespace: Namespace,
			Labels: map[string]string{staticpods.APIServerLabel: "true", "app": Component, staticpods.RevisionLabel: strconv.Itoa(revision)}},
		Spec: spec,
	}
}

// statuses writes the revisions of the nodes into the operator's CR, as the installer of a static pod operator does.
func (m *mirrors) statuses(ctx context.Context, nodes map[string]core.Node, installed map[string]int, newest int) error {
	if m.Whole {
		return nil // they are the operator's
	}
	shown, targeted := []any{}, false
	if m.highest == nil {
		m.highest = map[string]int{}
	}
	maps.DeleteFunc(m.highest, func(node string, _ int) bool { _, there := nodes[node]; return !there })
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		one := map[string]any{"nodeName": node}
		if m.known[node] { // the API refuses a revision of an entry that it does not have yet
			m.highest[node] = max(m.highest[node], installed[node])
			one["currentRevision"] = int64(m.highest[node]) // the API lets it only increase, also when the pod goes back
		}
		if installed[node] != newest && !targeted { // one node after another, and the API allows no more
			one["targetRevision"], targeted = int64(newest), true
		}
		shown = append(shown, one)
	}
	if fmt.Sprint(shown) == fmt.Sprint(m.shown) {
		return nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": staticpods.OperatorResource().GroupVersion().String(), "kind": "KubeAPIServer", "metadata": map[string]any{"name": cr},
		"status": map[string]any{"latestAvailableRevision": int64(newest), "nodeStatuses": shown},
	}}
	if _, err := m.Dynamic.Resource(staticpods.OperatorResource()).ApplyStatus(ctx, cr, u, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
		return fmt.Errorf("write the node statuses of %s/%s: %w", staticpods.OperatorResource().Resource, cr, err)
	}
	m.shown, m.known = shown, map[string]bool{}
	for node := range nodes {
		m.known[node] = true
	}
	return nil
}
