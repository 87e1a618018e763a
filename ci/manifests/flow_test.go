package manifests

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/contract"
)

const statusPath = "/apis/operator.openshift.io/v1/kubeapiservers/cluster/status?fieldManager=flow&force=true"

// flowOf is the name of the flow schema by which the API server classified a request, and its answer.
func (in *installed) flowOf(as rest.ImpersonationConfig, method, path string, body io.Reader, timeout time.Duration) (flow string, code int, err error) {
	config := rest.CopyConfig(in.config)
	config.Impersonate = as
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", 0, err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(in.t.Context(), timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(config.Host, "/")+path, body)
	if err != nil {
		return "", 0, err
	}
	r.Header.Set("Content-Type", "application/apply-patch+yaml")
	response, err := client.Do(r)
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close()
	schemas, err := in.admin.Resource(flowcontrolv1.SchemeGroupVersion.WithResource("flowschemas")).List(in.t.Context(), metav1.ListOptions{})
	if err != nil {
		return "", 0, err
	}
	for _, s := range schemas.Items {
		if string(s.GetUID()) == response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID) {
			flow = s.GetName()
		}
	}
	return flow, response.StatusCode, nil
}

// write is a write of a reporter that changes nothing.
func (in *installed) write(node string) (flow string, code int, err error) {
	return in.flowOf(certificate(node), http.MethodPatch, statusPath, strings.NewReader(`{"apiVersion":"operator.openshift.io/v1","kind":"KubeAPIServer"}`), 20*time.Second)
}

// settleFlow waits until the API server has loaded the flow schema of a reporter.
func (in *installed) settleFlow(want string) {
	in.t.Helper()
	err := wait.PollUntilContextTimeout(in.t.Context(), 100*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		flow, _, err := in.write("cp-1")
		return flow == want, err
	})
	if err != nil {
		in.t.Fatalf("flow schema of a reporter, expected %s: %v", want, err)
	}
}

// withheld is a body that does not come.
type withheld struct{ ctx context.Context }

func (w withheld) Read([]byte) (int, error) { <-w.ctx.Done(); return 0, w.ctx.Err() }

// flooded writes as one node while another one has sent many requests, and withholds their bodies. limited is how many of these got 429.
func (in *installed) flooded(flooding, node string) (code, limited int) {
	in.t.Helper()
	const clients = 30
	ctx, end := context.WithCancel(in.t.Context())
	var mu sync.Mutex
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			_, code, err := in.flowOf(certificate(flooding), http.MethodPatch, statusPath, withheld{ctx}, time.Minute)
			if err != nil && !errors.Is(err, context.Canceled) {
				in.t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if code == http.StatusTooManyRequests {
				limited++
			}
		})
	}
	// All that can be limited is: the others wait or are being executed.
	_ = wait.PollUntilContextTimeout(in.t.Context(), 50*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		return limited >= clients-21, nil
	})
	answered := make(chan int, 1)
	running.Go(func() {
		_, code, err := in.write(node)
		if err != nil {
			in.t.Error(err)
		}
		answered <- code
	})
	select {
	case code = <-answered: // refused at once, as a rule
		end()
	case <-time.After(2 * time.Second): // it waits for its turn
		end()
		code = <-answered
	}
	running.Wait()
	return code, limited
}

func (in *installed) metrics() string {
	client, err := rest.HTTPClientFor(in.config)
	if err != nil {
		in.t.Fatal(err)
	}
	response, err := client.Get(strings.TrimSuffix(in.config.Host, "/") + "/metrics")
	if err != nil {
		in.t.Fatal(err)
	}
	defer response.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(response.Body); err != nil {
		in.t.Fatal(err)
	}
	return text.String()
}

// Requests of reporters have a flow schema of their own, and one reporter's flood leaves a place in the queues for another one. Reads of the endpoints have
// another one. A schema for nobody, one without a distinguisher and one without the newer kind of endpoints are found.
func TestFlowSchemas(t *testing.T) {
	in := install(t, "kubeapiserver")
	in.settleFlow(contract.ReporterFlows)
	endpoints := "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
	for _, c := range []struct {
		name         string
		as           rest.ImpersonationConfig
		method, path string
		want         string
	}{
		{"a certificate writes", certificate("cp-2"), http.MethodPatch, statusPath, contract.ReporterFlows},
		{"a token reads", account("cp-1"), http.MethodGet, strings.TrimSuffix(statusPath, "/status"), contract.ReporterFlows},
		{"a legacy token reads", legacy("cp-1"), http.MethodGet, strings.TrimSuffix(statusPath, "/status"), contract.ReporterFlows},
		{"a request that is denied", certificate("cp-1"), http.MethodGet, "/api/v1/secrets", contract.ReporterFlows},
		{"a path", certificate("cp-1"), http.MethodGet, "/version", contract.ReporterFlows},
		{"addresses, as a reporter", certificate("cp-1"), http.MethodGet, endpoints, contract.EndpointFlows},
		{"addresses, as somebody else", rest.ImpersonationConfig{UserName: "somebody", Groups: []string{"system:authenticated"}}, http.MethodGet, "/api/v1/namespaces/default/endpoints/kubernetes", contract.EndpointFlows},
		{"endpoints of another namespace", rest.ImpersonationConfig{UserName: "somebody", Groups: []string{"system:authenticated"}}, http.MethodGet, "/api/v1/namespaces/kube-system/endpoints", "global-default"},
		{"the aggregator", rest.ImpersonationConfig{UserName: contract.AggregatorIdentity, Groups: []string{"system:authenticated"}}, http.MethodGet, "/version", "global-default"},
	} {
		if got, _, err := in.flowOf(c.as, c.method, c.path, nil, 20*time.Second); got != c.want || err != nil {
			t.Errorf("%s: %s, %v, expected %s", c.name, got, err, c.want)
		}
	}
	if !strings.Contains(in.metrics(), `apiserver_flowcontrol_dispatched_requests_total{flow_schema="`+contract.EndpointFlows+`"`) {
		t.Error("the metrics of the API server do not name the flow schema of endpoints")
	}
	if code, limited := in.flooded("cp-1", "cp-2"); code != http.StatusOK || limited != 9 {
		t.Errorf("a write during a flood of another reporter: %d, and %d of the flood limited, expected 200 and 9", code, limited)
	}

	// A schema that knows the addresses by their older kind alone.
	const wrong = "without-endpoint-slices"
	in.changeFlow(contract.EndpointFlows, func(spec *flowcontrolv1.FlowSchemaSpec) {
		spec.Rules[0].ResourceRules = spec.Rules[0].ResourceRules[:1]
	})
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		flow, _, err := in.flowOf(certificate("cp-1"), http.MethodGet, endpoints, nil, 20*time.Second)
		return flow != contract.EndpointFlows, err
	}); err != nil {
		t.Errorf("%s is not found: %v", wrong, err)
	}

	in.changeFlow(contract.ReporterFlows, func(spec *flowcontrolv1.FlowSchemaSpec) { spec.DistinguisherMethod = nil })
	if err := wait.PollUntilContextTimeout(t.Context(), time.Second, 20*time.Second, true, func(context.Context) (bool, error) {
		code, _ := in.flooded("cp-1", "cp-2")
		return code == http.StatusTooManyRequests, nil
	}); err != nil {
		t.Error("one flow for all reporters is not found: a write during a flood is not refused")
	}
	in.changeFlow(contract.ReporterFlows, func(spec *flowcontrolv1.FlowSchemaSpec) { spec.Rules[0].Subjects[0].Group.Name = "nobody" })
	in.settleFlow("global-default")
}

// changeFlow changes a flow schema.
func (in *installed) changeFlow(name string, change func(*flowcontrolv1.FlowSchemaSpec)) {
	in.t.Helper()
	schemas := in.admin.Resource(flowcontrolv1.SchemeGroupVersion.WithResource("flowschemas"))
	good, err := schemas.Get(in.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		in.t.Fatal(err)
	}
	text, err := json.Marshal(good.Object)
	if err != nil {
		in.t.Fatal(err)
	}
	var schema flowcontrolv1.FlowSchema
	if err := json.Unmarshal(text, &schema); err != nil {
		in.t.Fatal(err)
	}
	change(&schema.Spec)
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"distinguisherMethod": schema.Spec.DistinguisherMethod, "rules": schema.Spec.Rules}})
	if err != nil {
		in.t.Fatal(err)
	}
	if _, err := schemas.Patch(in.t.Context(), good.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		in.t.Fatal(err)
	}
}
