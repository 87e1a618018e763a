package main

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/options"
)

// raw writes the typed form with the key_id just as the plugin sent it. Of a plugin that failed there is none, the CRD
// demands one, and the API server rejects the apply: with the failure, and with the news of every other plugin.
type raw struct{ client dynamic.ResourceInterface }

// sendWhatItGot only knows the typed form of the kube-apiserver's operator.
func sendWhatItGot(o options.Options) (reporter.Change, error) {
	config, err := readKubeconfig(o)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	resource := schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: "kubeapiservers"}
	return func(l *reporter.Loop) { l.Publisher = raw{client.Resource(resource)} }, nil
}

// Apply implements reporter.Publisher.
func (r raw) Apply(ctx context.Context, write core.Action) error {
	ctx, cancel := context.WithDeadline(ctx, write.Until)
	defer cancel()
	cr, err := body(write.Report)
	if err != nil {
		return err
	}
	_, err = r.client.ApplyStatus(ctx, "cluster", cr, metav1.ApplyOptions{FieldManager: contract.FieldManager(write.Report.Node), Force: true})
	return err
}

func body(report contract.Report) (*unstructured.Unstructured, error) {
	items, err := report.Typed(nil)
	if err != nil {
		return nil, err
	}
	for i, e := range report.Entries {
		items[i].RemoteKeyID = e.KEKID
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "operator.openshift.io/v1", "kind": "KubeAPIServer", "metadata": map[string]any{"name": "cluster"},
		"status": map[string]any{"encryptionStatus": map[string]any{"healthReports": items}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the apply: %w", err)
	}
	cr := &unstructured.Unstructured{}
	return cr, cr.UnmarshalJSON(data)
}
