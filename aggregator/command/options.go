package command

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/alternatives"
	"github.com/kmsharness/kmsharness/internal/election"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

type Options struct {
	Kubeconfig string
	// Connectivity is service or altsvc.
	Connectivity string
	Alternatives []string // host:port of API servers, with altsvc
	Operator     string
	Interval     time.Duration
	NodeSelector string
	PodSelector  string
	PodNamespace string
	PodNodeLabel string
	KMSActive    string
	Inertia      []string
	// Profile is rollups or convergence.
	Profile string
	// ClusterOperator is unite or leave.
	ClusterOperator string
	MetricsAddress  string
	LogFormat       string
	LeaderElect     bool
	Lease           election.Options
	Stream          StreamOptions
}

// StreamOptions are the flags for reporters that stream; none is served without an address.
type StreamOptions struct {
	Address     string
	Certificate string
	Key         string
	ClientCA    string
	Contract    string
}

// The values of --connectivity, --kms-active, --cluster-operator and --log-format.
const (
	connectService = "service"
	connectAltSvc  = alternatives.AltSvc

	kmsAuto   = "auto"
	kmsAlways = "always"

	operatorUnite = "unite"
	operatorLeave = "leave"

	logJSON = "json"
	logText = "text"
)

// Defaults are what production needs; the lease times are those of kube-controller-manager.
func Defaults() Options {
	return Options{
		Connectivity:    connectService,
		Operator:        "kubeapiserver",
		Interval:        contract.DefaultTiming().Interval,
		NodeSelector:    "node-role.kubernetes.io/control-plane",
		KMSActive:       kmsAuto,
		Profile:         contract.AggregatorRollups,
		ClusterOperator: operatorUnite,
		MetricsAddress:  "127.0.0.1:9798",
		LogFormat:       logJSON,
		Lease:           election.Defaults("kms-health", ""),
		Stream:          StreamOptions{Contract: string(publish.Conditions)},
	}
}

// AddFlags registers the flags with o's values as defaults.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "kubeconfig file; empty for the in-cluster configuration")
	f.StringVar(&o.Connectivity, "connectivity", o.Connectivity, "way to the API server: service (that of the configuration, such as a load balancer or the API server of the node, alone) or altsvc (that, then any API server of --alternatives or that is advertised by Alt-Svc)")
	alternatives.AddFlag(f, &o.Alternatives)
	f.StringVar(&o.Operator, "operator", o.Operator, "whose reports to roll up: kubeapiserver, openshiftapiserver or authentication")
	f.DurationVar(&o.Interval, "interval", o.Interval, "the reporters' interval; a report is stale after 4 of them")
	f.StringVar(&o.NodeSelector, "node-selector", o.NodeSelector, "label selector of the nodes that should report")
	f.StringVar(&o.PodSelector, "pod-selector", o.PodSelector, "label selector of the API server pods whose nodes should report, instead of --node-selector")
	f.StringVar(&o.PodNamespace, "pod-namespace", o.PodNamespace, "namespace of --pod-selector")
	f.StringVar(&o.PodNodeLabel, "pod-node-label", o.PodNodeLabel, "label of those pods that names the node that they report for; empty: the node that they run on")
	f.StringVar(&o.KMSActive, "kms-active", o.KMSActive, "auto: as apiservers.config.openshift.io/cluster says; always: do not look there")
	f.StringSliceVar(&o.Inertia, "degraded-inertia", o.Inertia, "how long a condition must be True or Unknown before the ClusterOperator's Degraded shows it: a duration, and TYPE=DURATION for single types, such as 2m,NodeControllerDegraded=10m (default none)")
	f.StringVar(&o.Profile, "profile", o.Profile, "rollups: KMSPlugins conditions of reports; convergence: only whether remote key ids agree, as OpenShift's encryption controllers do")
	f.StringVar(&o.ClusterOperator, "cluster-operator", o.ClusterOperator, "unite: write the union of the conditions to the ClusterOperator; leave: the status controller of another program does")
	f.StringVar(&o.MetricsAddress, "metrics-address", o.MetricsAddress, "host:port of /metrics, /healthz and /readyz; empty for none")
	f.StringVar(&o.LogFormat, "log-format", o.LogFormat, "json or text")
	f.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "work only while holding a lease")
	o.Lease.AddFlags(f, "kms-health-aggregator-OPERATOR")
	f.StringVar(&o.Stream.Address, "stream-address", o.Stream.Address, "serve the streams of reporters (--publish stream) on this host:port; empty for none")
	f.StringVar(&o.Stream.Certificate, "stream-certificate", o.Stream.Certificate, "PEM file of the serving certificate, for the name "+contract.AggregatorServerName)
	f.StringVar(&o.Stream.Key, "stream-key", o.Stream.Key, "PEM file of its key")
	f.StringVar(&o.Stream.ClientCA, "stream-client-ca", o.Stream.ClientCA, "PEM file of the authority that signs the reporters' certificates")
	f.StringVar(&o.Stream.Contract, "stream-contract", o.Stream.Contract, "form in which streamed reports are written: conditions or healthreports")
}

// lease has the name of the lease: one for each operator, since each has an aggregator of its own.
func (o Options) lease() election.Options {
	if o.Lease.Name == "" {
		o.Lease.Name = "kms-health-aggregator-" + o.Operator
	}
	return o.Lease
}
