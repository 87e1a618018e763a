package openshift

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// writer applies the reports of one node.
type writer struct {
	options
	client  dynamic.ResourceInterface
	manager string
	queue   [][]report // of failedQueue
}

func newWriter(config *rest.Config, o options) (*writer, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	resource := schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: "kubeapiservers"}
	w := &writer{options: o, client: client.Resource(resource), manager: fmt.Sprintf("kms-health-reporter-%x", sha256.Sum256([]byte(o.node)))}
	switch o.mistake {
	case sharedManager:
		w.manager = "kms-health-reporter"
	case managerWithPID:
		w.manager += fmt.Sprint("-", os.Getpid())
	}
	return w, nil
}

// write applies all reports at once. What cannot be written is dropped.
func (w *writer) write(ctx context.Context, reports []report) error {
	if w.mistake != failedQueue {
		return w.apply(ctx, reports)
	}
	for w.queue = append(w.queue, reports); len(w.queue) > 0; w.queue = w.queue[1:] {
		if err := w.apply(ctx, w.queue[0]); err != nil {
			return err
		}
	}
	return nil
}

// apply writes reports in place of those from before; without any, it removes them.
func (w *writer) apply(ctx context.Context, reports []report) error {
	content := map[string]any{"apiVersion": "operator.openshift.io/v1", "kind": "KubeAPIServer", "metadata": map[string]any{"name": "cluster"}}
	if len(reports) > 0 { // the admission policy refuses an empty status, which would leave an owner of nothing
		content["status"] = map[string]any{"encryptionStatus": map[string]any{"healthReports": reports}}
	}
	data, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode the apply: %w", err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		return fmt.Errorf("encode the apply: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, w.writeTimeout)
	defer cancel()
	_, err = w.client.ApplyStatus(ctx, "cluster", object, metav1.ApplyOptions{FieldManager: w.manager, Force: true})
	return err
}
