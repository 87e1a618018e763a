package command

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/operator/core"
)

// A bad command line is one line and exit code 2.
func TestParse(t *testing.T) {
	opts, err := parse([]string{"--kubeconfig", "k", "--interval", "1s", "--settle=30s", "--retry", "2s", "--keep", "3"})
	want := core.DefaultOptions()
	want.Interval, want.Settle, want.Retry, want.Keep = time.Second, 30*time.Second, 2*time.Second, 3
	if err != nil || opts.kubeconfig != "k" || opts.Options != want || opts.leaderElect || opts.Kind != "KubeAPIServer" || len(opts.Encrypted) != 2 || opts.lease.Namespace != "openshift-kube-apiserver-operator" {
		t.Errorf("%+v %v", opts, err)
	}
	opts, err = parse([]string{"--operator=authentication", "--encrypt=secrets,flunders.v1beta1.wardle.example.com", "--before-kms"})
	if err != nil || opts.Namespace != "openshift-oauth-apiserver" || !opts.config.BeforeKMS || !slices.Equal(opts.Encrypted, []schema.GroupVersionResource{
		{Version: "v1", Resource: "secrets"}, {Group: "wardle.example.com", Version: "v1beta1", Resource: "flunders"}}) {
		t.Errorf("%+v %v", opts, err)
	}
	for want, args := range map[string]string{
		`"extra": expected flags only`:                   "extra",
		"unknown flag: --wrong":                          "--wrong",
		"--interval 0s: expected a time above 0":         "--interval 0s",
		"--settle -1s: expected 0 or more":               "--settle -1s",
		"--retry 0s: expected a time above 0":            "--retry 0s",
		"--keep 0: expected 1 or more":                   "--keep 0",
		"--check-timeout 0s: expected a time above 0":    "--check-timeout 0s",
		`--operator: operator "etcd": expected`:          "--operator etcd",
		`--encrypt: "a.b": expected NAME of the core`:    "--encrypt a.b",
		"--leader-elect-identity: must not be empty":     "--leader-elect --leader-elect-identity=",
		`invalid argument "soon" for "--interval" flag:`: "--interval soon",
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, expected %q", args, err, want)
		}
	}
	if code := Main(t.Context(), host.Host{}, []string{"--version"}, io.Discard, io.Discard); code != 0 {
		t.Errorf("--version: exit %d", code)
	}
	if err := operate(t.Context(), host.Host{}, options{kubeconfig: "/nowhere"}, io.Discard); err == nil || !strings.Contains(err.Error(), `read the kubeconfig "/nowhere"`) {
		t.Error(err)
	}
	if err := operate(t.Context(), host.Host{}, options{}, io.Discard); err == nil || !strings.Contains(err.Error(), "expected --kubeconfig outside of a cluster") {
		t.Error(err)
	}
}
