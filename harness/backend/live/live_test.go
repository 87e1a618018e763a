package live

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/recorder"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

func TestLogCopyTakesWhatWasAppended(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		f, err := os.OpenFile(filepath.Join(from, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("old.log", "before\n")
	c, err := recorder.MarkLogs([]cluster.LogDir{{Dir: from, Prefix: "n-"}}, to)
	if err != nil {
		t.Fatal(err)
	}
	write("old.log", "after\n")
	write("admin.kubeconfig", "secret")
	write("new.jsonl", "all\n")
	if err := c.Copy(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"n-old.log": "after\n", "n-new.jsonl": "all\n"} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
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
