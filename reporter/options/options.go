// Package options is the command line of kms-health-reporter: its flags, their defaults, and what is wrong with what
// was given. --kms-sockets, --node-name, --kubeconfig, --interval, --read-timeout and --write-timeout keep the names
// that OpenShift's own reporter uses, so that either can be put in the other's place.
package options

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/alternatives"
	"github.com/kmsharness/kmsharness/reporter/probe"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// Connectivity is the way to the API server.
type Connectivity string

const (
	Loopback Connectivity = "loopback" // the local kube-apiserver, by kubeconfig; for static pods
	Service  Connectivity = "service"  // the in-cluster configuration; for Deployments
	// AltSvc is any API server of Options.Alternatives or that advertises itself by RFC 7838. Without a list the load balancer of a kubeconfig or
	// of the in-cluster configuration comes first.
	AltSvc Connectivity = alternatives.AltSvc
)

// Publish is how reports get to the API server.
type Publish string

const (
	Apply  Publish = "ssa"    // the reporter applies them itself
	Stream Publish = "stream" // it sends them to the aggregator, which does
)

// Options is a valid command line.
type Options struct {
	Plugins        []probe.Plugin
	Node           string
	Kubeconfig     string
	Timing         contract.Timing
	Form           publish.Form
	Publish        Publish
	Aggregators    []string // host:port of the aggregator's replicas, with Publish Stream
	Connectivity   Connectivity
	Alternatives   []string // host:port of API servers, with Connectivity AltSvc
	Operator       publish.Operator
	MetricsAddress string // empty: serve nothing
	LogFormat      string // json or text
	Verbosity      int    // 0: changes and failures; from 4 on every tick, too
}

// raw is the command line as it was typed.
type raw struct {
	sockets, aggregators, alternatives                   []string
	node, kubeconfig                                     string
	interval, jitter, readTimeout, writeTimeout          time.Duration
	form, connectivity, operator, metricsAddress, format string
	publish                                              string
	verbosity                                            int
}

const usage = `kms-health-reporter probes the KMS v2 plugins of one node and reports their health to the operator's CR.

Usage:
  kms-health-reporter --kms-sockets=SOCKETS --node-name=NODE [flags]

Examples:
  # beside the kube-apiserver of node cp-1, during a migration from key 1 to key 2 (the write key comes first)
  kms-health-reporter --node-name=cp-1 --kubeconfig=/etc/kubernetes/reporter.kubeconfig \
    --kms-sockets=unix:///var/run/kmsplugin/kms-2.sock,unix:///var/run/kmsplugin/kms-1.sock

  # in a Deployment, for the OAuth API server, in the typed form
  kms-health-reporter --node-name=$(NODE_NAME) --connectivity=service --operator=authentication \
    --contract=healthreports --kms-sockets=unix:///var/run/kmsplugin/kms-2.sock

Flags:
`

// flags declares every flag.
func (r *raw) flags() *pflag.FlagSet {
	d := contract.DefaultTiming()
	fs := pflag.NewFlagSet("kms-health-reporter", pflag.ContinueOnError)
	fs.SortFlags = false
	fs.StringSliceVar(&r.sockets, "kms-sockets", nil, "comma-separated sockets of the plugins, unix:///DIR/kms-KEYID.sock; the write key first")
	fs.StringVar(&r.node, "node-name", "", "node that this reporter reports for")
	fs.StringVar(&r.kubeconfig, "kubeconfig", "", "kubeconfig of the local API server (connectivity loopback), or of the load balancer (altsvc; default: in-cluster)")
	fs.DurationVar(&r.interval, "interval", d.Interval, "time between two probes and writes")
	fs.DurationVar(&r.readTimeout, "read-timeout", d.ProbeTimeout, "deadline of each Status call; at most the interval")
	fs.DurationVar(&r.writeTimeout, "write-timeout", d.WriteTimeout, "deadline of each write; at most the interval")
	fs.DurationVar(&r.jitter, "jitter", 0, "most by which a tick is moved; at most a tenth of the interval (default a tenth of the interval)")
	fs.StringVar(&r.form, "contract", string(publish.Conditions), "form of the report: conditions or healthreports")
	fs.StringVar(&r.publish, "publish", string(Apply), "way of a report to the operator's CR: ssa (the reporter applies it) or stream (it sends it to the aggregator, with the certificate of its kubeconfig)")
	fs.StringSliceVar(&r.aggregators, "aggregators", nil, "host:port of the aggregator's replicas, comma-separated, with --publish stream; a name stands for all its addresses")
	fs.StringVar(&r.connectivity, "connectivity", string(Loopback), "way to the API server: loopback (kubeconfig), service (in-cluster) or altsvc (either, then any API server that is advertised by Alt-Svc)")
	alternatives.AddFlag(fs, &r.alternatives)
	fs.StringVar(&r.operator, "operator", string(publish.KubeAPIServer), "operator whose CR is written: kubeapiserver, openshiftapiserver or authentication")
	fs.StringVar(&r.metricsAddress, "metrics-address", "", "serve /metrics and /healthz on this host:port; port 0 picks a free one (default: not served)")
	fs.StringVar(&r.format, "log-format", "json", "json or text")
	fs.IntVar(&r.verbosity, "v", 0, "0 logs changes and failures, 4 every tick, too")
	return fs
}

// Parse reads args (without the program's name). For --help it writes the usage to out and returns pflag.ErrHelp.
// Otherwise every mistake is one error of one line; the options are only valid without any.
func Parse(args []string, out io.Writer) (Options, []error) {
	var r raw
	fs := r.flags()
	fs.Usage = func() { fmt.Fprint(out, usage+fs.FlagUsages()) }
	fs.SetOutput(io.Discard)
	if err := fs.Parse(args); err != nil {
		return Options{}, []error{oneLine(err)}
	}
	if !fs.Changed("jitter") {
		r.jitter = r.interval / 10
	}
	if fs.NArg() > 0 {
		return Options{}, []error{fmt.Errorf("argument %q: expected flags only", contract.SafeText(fs.Arg(0), 64))}
	}
	return r.validate()
}

// oneLine keeps pflag.ErrHelp recognizable and everything else printable.
func oneLine(err error) error {
	if err == pflag.ErrHelp {
		return err
	}
	return fmt.Errorf("%s (see --help)", contract.SafeText(strings.TrimSpace(err.Error()), 200))
}
