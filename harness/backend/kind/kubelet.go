package kind

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/operator"
)

const portKubelet = "10250"

// kubelet is a client of the kubelet of the node with an address. A kubelet uses the API server of its own node, so what it says of a pod that keeps this API
// server from starting can be read nowhere else. Kubeadm signs the kubelet's certificate with nothing that is known here.
func kubelet(a controlplane.Authority, address string) (*cluster.Client, error) {
	config, err := a.AdminConfig("https://" + address + ":" + portKubelet)
	if err != nil {
		return nil, err
	}
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true, CertData: config.CertData, KeyData: config.KeyData}
	return cluster.NewClient(config)
}

// kubeletAnswers lets every client with a certificate of the cluster ask a kubelet. By default a kubelet asks the API server of its own node who may,
// and this API server may be down.
const kubeletAnswers = `kind: KubeletConfiguration
apiVersion: kubelet.config.k8s.io/v1beta1
authorization: {mode: AlwaysAllow}
`

// kubeletPods are the pods of a node, as its kubelet has them.
func kubeletPods(ctx context.Context, kubelet *cluster.Client) (*corev1.PodList, error) {
	text, err := kubelet.Get(ctx, "/pods")
	if err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := json.Unmarshal(text, &pods); err != nil {
		return nil, fmt.Errorf("pods of a kubelet: %w", err)
	}
	return &pods, nil
}

// workingPods is the metric of a kubelet for the pods that it has something to do for. It is set at the end of each round of its housekeeping.
const workingPods = "kubelet_working_pods"

// endingStaticPods is how many static pods a kubelet has something to do for that have no manifest any more. One that has no such metric has none.
func endingStaticPods(ctx context.Context, kubelet *cluster.Client) (n int, err error) {
	text, err := kubelet.Get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return 0, fmt.Errorf("metrics of a kubelet: %w", err)
	}
	for _, m := range families[workingPods].GetMetric() {
		is := map[string]string{}
		for _, l := range m.GetLabel() {
			is[l.GetName()] = l.GetValue()
		}
		if is["config"] == "orphan" && is["static"] == "true" {
			n += int(m.GetGauge().GetValue())
		}
	}
	return n, nil
}

// revisedPod is the pod of a name and revision, if the kubelet has it. The one of the revision before may be there as well.
func revisedPod(pods *corev1.PodList, namespace, name string, revision int) *corev1.Pod {
	for i := range pods.Items {
		if is := &pods.Items[i]; is.Namespace == namespace && is.Name == name && is.Labels[labelRevision] == strconv.Itoa(revision) {
			return is
		}
	}
	return nil
}

// waitingPlugins are the containers for plugins of a pod that cannot run; units are those of the pod's plugins.
func waitingPlugins(pod *corev1.Pod, units []string) []cluster.WaitingContainer {
	var all []cluster.WaitingContainer
	for _, s := range pod.Status.InitContainerStatuses {
		for _, unit := range units {
			if why := operator.WhyWaiting(s); why != "" && s.Name == containerName(unit) {
				all = append(all, cluster.WaitingContainer{Name: s.Name, Plugin: strings.TrimPrefix(unit, unitOfPlugin("")), Reason: why})
			}
		}
	}
	return all
}
