package live

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

func TestResourcePath(t *testing.T) {
	for params, want := range map[[4]string]string{
		{"kubeapiservers.operator.openshift.io/status", "", "cluster"}: "/apis/operator.openshift.io/v1/kubeapiservers/cluster/status",
		{"kubeapiservers/status", "", "cluster"}:                       "/apis/operator.openshift.io/v1/kubeapiservers/cluster/status",
		{"secrets", "default", "x"}:                                    "/api/v1/namespaces/default/secrets/x",
		{"clusteroperators", "", ""}:                                   "/apis/config.openshift.io/v1/clusteroperators",
		{"roles.rbac.authorization.k8s.io", "kms-health", ""}:          "/apis/rbac.authorization.k8s.io/v1/namespaces/kms-health/roles",
	} {
		a := &scenario.Attempt{Resource: params[0], Namespace: params[1], Name: params[2]}
		if got := resourcePath(a); got != want {
			t.Errorf("%v: %s, want %s", params, got, want)
		}
	}
}
