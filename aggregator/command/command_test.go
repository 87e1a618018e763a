package command

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	cmd := New(host.Host{}, &out)
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--version"})
	if err := cmd.Execute(); err != nil || !strings.HasPrefix(out.String(), "kms-health-aggregator ") || !strings.Contains(out.String(), "Kubernetes 1.") {
		t.Errorf("%v: %q", err, out.String())
	}
}

// Every mistake is one line that names the flag, and the exit code is 2.
func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"unknown flag":       {[]string{"--colour"}, []string{"unknown flag: --colour"}},
		"argument":           {[]string{"now"}, []string{`unexpected argument "now"`}},
		"not a duration":     {[]string{"--interval=soon"}, []string{"--interval"}},
		"interval":           {[]string{"--interval=0s"}, []string{"--interval 0s: must be positive"}},
		"operator":           {[]string{"--operator=etcd"}, []string{`--operator: operator "etcd"`}},
		"connectivity":       {[]string{"--connectivity=loopback"}, []string{`--connectivity "loopback": expected service or altsvc`}},
		"alternatives alone": {[]string{"--alternatives=10.0.0.1:6443"}, []string{"--alternatives is for --connectivity altsvc"}},
		"alternative":        {[]string{"--connectivity=altsvc", "--alternatives=10.0.0.1:a"}, []string{`--alternatives: parse static alternative "10.0.0.1:a"`}},
		"selector":           {[]string{"--node-selector=a in"}, []string{"--node-selector:"}},
		"pods, no namespace": {[]string{"--pod-selector=a=b"}, []string{"needs --pod-namespace"}},
		"namespace, no pods": {[]string{"--pod-namespace=a"}, []string{"needs --pod-selector"}},
		"kms":                {[]string{"--kms-active=no"}, []string{`--kms-active "no"`}},
		"log format":         {[]string{"--log-format=xml"}, []string{`--log-format "xml"`}},
		"inertia":            {[]string{"--degraded-inertia=2m,soon"}, []string{`--degraded-inertia: inertia "soon": expected a duration`}},
		"inertia of a type":  {[]string{"--degraded-inertia=2m", "--degraded-inertia=XAvailable=2m"}, []string{`--degraded-inertia: inertia "XAvailable=2m": expected a condition type that ends in Degraded`}},
		"metrics address":    {[]string{"--metrics-address=9798"}, []string{"--metrics-address"}},
		"lease times":        {[]string{"--leader-elect", "--leader-elect-lease-duration=5s"}, []string{"--leader-elect-renew-deadline 10s: must be less"}},
		"retry period":       {[]string{"--leader-elect", "--leader-elect-retry-period=10s"}, []string{"--leader-elect-renew-deadline 10s: must be more than 12s"}},
		"lease names":        {[]string{"--leader-elect", "--leader-elect-namespace=A", "--leader-elect-identity="}, []string{"--leader-elect-namespace", "--leader-elect-identity"}},
		"stream, no files":   {[]string{"--stream-address=:9800"}, []string{`--stream-address ":9800": needs --stream-certificate, --stream-key and --stream-client-ca`}},
		"files, no stream":   {[]string{"--stream-key=k"}, []string{"need --stream-address"}},
		"stream address":     {[]string{"--stream-address=9800", "--stream-certificate=c", "--stream-key=k", "--stream-client-ca=a"}, []string{`--stream-address "9800": expected host:port`}},
		"stream contract":    {[]string{"--stream-contract=both"}, []string{`--stream-contract "both": expected conditions or healthreports`}},
		"two mistakes":       {[]string{"--interval=-1s", "--kms-active="}, []string{"--interval", "--kms-active"}},
	} {
		var stderr bytes.Buffer
		code := Main(context.Background(), host.Host{}, c.args, &stderr)
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		if code != ExitUsage || len(lines) != len(c.want) {
			t.Errorf("%s: exit code %d, %d lines; want %d and %d: %s", name, code, len(lines), ExitUsage, len(c.want), stderr.String())
			continue
		}
		for i, l := range lines {
			if !strings.HasPrefix(l, "kms-health-aggregator: ") || !strings.Contains(l, c.want[i]) {
				t.Errorf("%s: got %q, want %q in it", name, l, c.want[i])
			}
		}
	}
}

func TestUnionFlags(t *testing.T) {
	o := Defaults()
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(f)
	o.Kubeconfig = kubeconfig(t)
	for _, c := range []struct {
		args []string
		want contract.Union
	}{
		{nil, contract.Union{}},
		{[]string{"--degraded-inertia", "2m,XDegraded=0s", "--degraded-inertia=YDegraded=10m"}, contract.Union{
			Inertia: contract.Inertia{All: 2 * time.Minute, Types: map[string]time.Duration{"XDegraded": 0, "YDegraded": 10 * time.Minute}},
		}},
	} {
		if err := f.Parse(c.args); err != nil || len(o.Validate()) > 0 {
			t.Fatal(err, o.Validate())
		}
		config, err := o.config(host.Host{}, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
		if err != nil || !config.Union.Equal(c.want) {
			t.Errorf("%q: unites with %+v, %v, want %+v", c.args, config.Union, err, c.want)
		}
	}
}

// kubeconfig is one that leads nowhere.
func kubeconfig(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]}"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestUnusableKubeconfig(t *testing.T) {
	var stderr bytes.Buffer
	if code := Main(context.Background(), host.Host{}, []string{"--kubeconfig", filepath.Join(t.TempDir(), "none")}, &stderr); code != ExitFailed || !strings.Contains(stderr.String(), "load kubeconfig") {
		t.Errorf("exit code %d, %s", code, stderr.String())
	}
}

// Without an API server it is alive but not ready, and a signal ends it at once, cleanly.
func TestAliveNotReadyAndQuickToStop(t *testing.T) {
	file, address := kubeconfig(t), freeAddress(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() {
		done <- Main(ctx, host.Host{}, []string{"--kubeconfig", file, "--metrics-address", address}, io.Discard)
	}()
	await(t, "http://"+address+"/healthz", http.StatusOK)
	await(t, "http://"+address+"/readyz", http.StatusServiceUnavailable)
	await(t, "http://"+address+"/metrics", http.StatusOK)
	http.DefaultClient.CloseIdleConnections()
	cancel()
	select {
	case code := <-done:
		if code != ExitOK {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(2 * time.Second):
		t.Fatal("it did not stop within 2 s")
	}
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func await(t *testing.T, url string, want int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); <-tick.C {
		response, err := http.Get(url)
		if err != nil {
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode == want {
			return
		}
	}
	t.Fatalf("%s never answered %d", url, want)
}
