package staticpods

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/exchange"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Nodes implements operator.Executor. Expected are the nodes in the status of the operator's CR.
func (e *Executor) Nodes(ctx context.Context) (map[string]core.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, exchange.RequestTimeout)
	defer cancel()
	cr, err := e.Dynamic.Resource(OperatorResource()).Get(ctx, CR, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	pods, err := e.Client.CoreV1().Pods(Namespace).List(ctx, metav1.ListOptions{LabelSelector: APIServerLabel + "=true"})
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", Component, err)
	}
	nodes := map[string]core.Node{}
	statuses, _, _ := unstructured.NestedSlice(cr.Object, "status", "nodeStatuses")
	for _, one := range statuses {
		status, _ := one.(map[string]any)
		if name, _, _ := unstructured.NestedString(status, "nodeName"); name != "" {
			nodes[name] = core.Node{Unavailable: true, Reporter: slices.Clone(e.sockets[name])}
		}
	}
	maps.DeleteFunc(e.sockets, func(name string, _ []uint64) bool { _, there := nodes[name]; return !there })
	files, err := e.files(ctx)
	if err != nil {
		return nil, err
	}
	installed := map[int]installation{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		n, expected := nodes[pod.Spec.NodeName]
		if !expected || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		n.Unavailable, n.Since = false, pod.CreationTimestamp.Time
		if ready(pod) {
			number, err := strconv.Atoi(pod.Labels[RevisionLabel])
			if err != nil {
				return nil, fmt.Errorf("pod %s/%s: label %s is %q: expected a number", pod.Namespace, pod.Name, RevisionLabel, pod.Labels[RevisionLabel])
			}
			if _, read := installed[number]; !read {
				if installed[number], err = e.installation(ctx, number, files); err != nil {
					return nil, err
				}
			}
			n.Up, n.Loaded, n.Plugins = true, installed[number].loaded, maps.Clone(installed[number].plugins)
		}
		nodes[pod.Spec.NodeName] = n
	}
	return nodes, nil
}

func ready(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// installation is what the pods of a revision have.
type installation struct {
	loaded  int // revision of the encryption configuration; 0: none that the operator made
	plugins map[uint64]config.Plugin
}

// installation reads the Secret of a revision of the pods. The first one has none, because nothing was ever encrypted.
func (e *Executor) installation(ctx context.Context, number int, files map[string]int) (installation, error) {
	s, err := e.Client.CoreV1().Secrets(Namespace).Get(ctx, ConfigName(number), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return installation{}, nil
	}
	if err != nil {
		return installation{}, fmt.Errorf("read revision %d of the pods: %w", number, err)
	}
	c, err := ReadConfiguration(s)
	if err != nil {
		return installation{}, err
	}
	return installation{files[string(c.File)], plugins(s, c)}, nil
}

// files are the revisions of the encryption configuration, by their content.
func (e *Executor) files(ctx context.Context) (map[string]int, error) {
	list, err := e.Client.CoreV1().Secrets(revision.Namespace).List(ctx, metav1.ListOptions{LabelSelector: revision.Selector(Component, revision.KindConfig)})
	if err != nil {
		return nil, fmt.Errorf("list the encryption configurations: %w", err)
	}
	files := map[string]int{}
	for i := range list.Items {
		_, c, file, err := revision.ReadConfig(&list.Items[i])
		if err != nil {
			return nil, err
		}
		files[string(file)] = max(files[string(file)], c.Revision)
	}
	return files, nil
}
