package options

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/reporter/probe"
)

// valid is the shortest valid command line, with more flags after it.
func valid(more ...string) []string {
	return append([]string{"--kms-sockets=unix:///var/run/kmsplugin/kms-2.sock", "--node-name=cp-1", "--kubeconfig=k"}, more...)
}

func TestDefaults(t *testing.T) {
	o, errs := Parse(valid(), nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := Options{
		Plugins: []probe.Plugin{{KeyID: "2", Socket: "/var/run/kmsplugin/kms-2.sock"}}, Node: "cp-1", Kubeconfig: "k",
		Timing: contract.DefaultTiming(), Form: "conditions", Publish: "ssa", Connectivity: "loopback", Operator: "kubeapiserver", LogFormat: "json",
	}
	if fmt.Sprintf("%+v", o) != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %+v\nwant %+v", o, want)
	}
}

func TestEveryFlag(t *testing.T) {
	o, errs := Parse([]string{
		"--kms-sockets", "unix:///a/kms-2.sock,unix:///a/kms-1.sock", "--node-name", "cp-1.example.com", "--interval", "1s", "--read-timeout", "500ms",
		"--write-timeout", "900ms", "--jitter", "50ms", "--contract", "healthreports", "--connectivity", "service", "--operator", "authentication",
		"--metrics-address", "127.0.0.1:0", "--log-format", "text", "--v", "4",
	}, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if o.Timing.Jitter != 50*time.Millisecond || o.Plugins[1].KeyID != "1" || o.Operator != "authentication" || o.Verbosity != 4 || o.MetricsAddress != "127.0.0.1:0" {
		t.Errorf("%+v", o)
	}
}

// The load balancer of a reporter that fails over is that of a kubeconfig or of the in-cluster configuration.
func TestFailoverTakesEitherConfiguration(t *testing.T) {
	for _, args := range [][]string{valid("--connectivity=altsvc"), {"--kms-sockets=unix:///a/kms-2.sock", "--node-name=cp-1", "--connectivity=altsvc"}} {
		if o, errs := Parse(args, nil); len(errs) > 0 || o.Connectivity != AltSvc {
			t.Errorf("%v: connectivity %q, %v", args, o.Connectivity, errs)
		}
	}
}

func TestStreaming(t *testing.T) {
	o, errs := Parse(valid("--publish=stream", "--aggregators=aggregator.kms-health.svc:9443,[fd00::1]:9443"), nil)
	if len(errs) > 0 || o.Publish != Stream || len(o.Aggregators) != 2 {
		t.Errorf("%+v, %v", o, errs)
	}
}

func TestJitterFollowsTheInterval(t *testing.T) {
	o, _ := Parse(valid("--interval=20s"), nil)
	if o.Timing.Jitter != 2*time.Second {
		t.Errorf("jitter %v with an interval of 20s", o.Timing.Jitter)
	}
}

func TestEveryMistakeIsOneClearLine(t *testing.T) {
	many := slices.Repeat([]string{"unix:///a/kms-1.sock"}, contract.MaxEntries+1)
	tests := []struct {
		name string
		args []string
		want []string // a part of each line
	}{
		{"nothing given", nil, []string{"--kms-sockets is required", "--node-name is required", "--kubeconfig is required"}},
		{"no sockets", []string{"--kms-sockets=", "--node-name=n", "--kubeconfig=k"}, []string{"--kms-sockets is required"}},
		{"an empty socket", valid("--kms-sockets=,unix:///a/kms-1.sock"), []string{`socket ""`}},
		{"not a unix socket", valid("--kms-sockets=tcp://x:1"), []string{"expected unix:///DIR/kms-KEYID.sock"}},
		{"relative socket", valid("--kms-sockets=unix://kms-3.sock"), []string{"expected unix:///DIR/kms-KEYID.sock"}},
		{"socket of another name", valid("--kms-sockets=unix:///a/plugin.sock"), []string{"file name must be kms-KEYID.sock"}},
		{"two bad sockets", []string{"--kms-sockets=a,b", "--node-name=n", "--kubeconfig=k"}, []string{`socket "a"`, `socket "b"`}},
		{"same keyID twice", valid("--kms-sockets=unix:///b/kms-2.sock"), []string{"keyID 2 occurs twice"}},
		{"too many sockets", valid("--kms-sockets=" + strings.Join(many, ",")), []string{"has 34 sockets, at most 32"}},
		{"node name in capitals", valid("--node-name=CP_1"), []string{`--node-name "CP_1"`}},
		{"hostile node name", valid("--node-name=a\nb"), []string{`--node-name "a b"`}},
		{"interval zero", valid("--interval=0s"), []string{"--interval 0s: must be positive", "--read-timeout 5s", "--write-timeout 10s"}},
		{"read timeout over interval", valid("--interval=10s", "--read-timeout=11s"), []string{"--read-timeout 11s"}},
		{"--write-timeout over interval", valid("--interval=10s", "--write-timeout=11s"), []string{"--write-timeout 11s"}},
		{"read timeout zero", valid("--read-timeout=0"), []string{"--read-timeout 0s"}},
		{"jitter over a tenth", valid("--jitter=4s"), []string{"--jitter 4s: must be 0 to a tenth of the interval 30s"}},
		{"jitter negative", valid("--jitter=-1s"), []string{"--jitter -1s"}},
		{"unknown form", valid("--contract=both"), []string{`--contract "both": expected conditions or healthreports`}},
		{"unknown connectivity", valid("--connectivity=any"), []string{`--connectivity "any": expected loopback or service or altsvc`}},
		{"service with kubeconfig", valid("--connectivity=service"), []string{"--kubeconfig is not used"}},
		{"unknown way of publishing", valid("--publish=push"), []string{`--publish "push": expected ssa or stream`}},
		{"stream to nobody", valid("--publish=stream"), []string{"--aggregators is required with --publish stream"}},
		{"aggregators without a stream", valid("--aggregators=a:1"), []string{"--aggregators is for --publish stream"}},
		{"aggregator without port", valid("--publish=stream", "--aggregators=a"), []string{`--aggregators: "a": expected host:port`}},
		{"stream through the load balancer", valid("--publish=stream", "--aggregators=a:1", "--connectivity=altsvc"), []string{"--connectivity altsvc: a reporter that streams does not use the API server"}},
		{"unknown operator", valid("--operator=etcd"), []string{`--operator "etcd": expected kubeapiserver or openshiftapiserver or authentication`}},
		{"metrics address without port", valid("--metrics-address=localhost"), []string{`--metrics-address "localhost": expected host:port`}},
		{"metrics address with a bad port", valid("--metrics-address=:99999"), []string{`--metrics-address ":99999": expected host:port`}},
		{"unknown log format", valid("--log-format=xml"), []string{`--log-format "xml": expected json or text`}},
		{"negative verbosity", valid("--v=-1"), []string{"--v -1"}},
		{"not a duration", valid("--interval=soon"), []string{`invalid argument "soon" for "--interval"`}},
		{"unknown flag", valid("--intervall=1s"), []string{"unknown flag: --intervall"}},
		{"argument", valid("status"), []string{`argument "status": expected flags only`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, errs := Parse(tt.args, nil)
			if len(errs) != len(tt.want) {
				t.Fatalf("%d mistakes %q, expected %d", len(errs), errs, len(tt.want))
			}
			for i, err := range errs {
				if !strings.Contains(err.Error(), tt.want[i]) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%q, expected one line with %q", err, tt.want[i])
				}
			}
		})
	}
}

func TestHelpShowsExamplesAndEveryFlag(t *testing.T) {
	var out bytes.Buffer
	_, errs := Parse([]string{"--help"}, &out)
	if len(errs) != 1 || !errors.Is(errs[0], pflag.ErrHelp) {
		t.Fatalf("--help: %v", errs)
	}
	for _, want := range []string{"Usage:", "Examples:", "--kms-sockets", "--interval duration", "--v int"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("help lacks %q:\n%s", want, &out)
		}
	}
}

// S4-05: a static list of API servers.
func TestAlternatives(t *testing.T) {
	list := "--alternatives=10.0.0.1:6443,10.0.0.2:6443"
	if o, errs := Parse(valid("--connectivity=altsvc", list), nil); len(errs) > 0 || len(o.Alternatives) != 2 {
		t.Errorf("%v, %v", o.Alternatives, errs)
	}
	for want, args := range map[string][]string{
		"--alternatives is for --connectivity altsvc":                   {list},
		`--alternatives: parse static alternative "https://10.0.0.1/x"`: {"--connectivity=altsvc", "--alternatives=https://10.0.0.1/x"},
	} {
		if _, errs := Parse(valid(args...), nil); len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), want) {
			t.Errorf("%v: %v, want %s", args, errs, want)
		}
	}
}
