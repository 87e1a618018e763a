package command

import (
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/pflag"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// Options are the flags.
type Options struct {
	Kubeconfig    string
	Operator      string
	Interval      time.Duration
	NodeSelector  string
	PodSelector   string
	PodNamespace  string
	PodNodeLabel  string
	KMSActive     string
	Inertia       []string
	UnknownStatus string
	// ClusterOperator is unite or leave.
	ClusterOperator string
	MetricsAddress  string
	LogFormat       string
	LeaderElect     bool
	Lease           LeaseOptions
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

// LeaseOptions are the flags of leader election.
type LeaseOptions struct {
	Namespace     string
	Name          string
	Identity      string
	Duration      time.Duration
	RenewDeadline time.Duration
	RetryPeriod   time.Duration
}

// The values of --kms-active, --cluster-operator and --log-format.
const (
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
		Operator:        "kubeapiserver",
		Interval:        contract.DefaultTiming().Interval,
		NodeSelector:    "node-role.kubernetes.io/control-plane",
		KMSActive:       kmsAuto,
		UnknownStatus:   contract.UnknownRules()[0],
		ClusterOperator: operatorUnite,
		MetricsAddress:  "127.0.0.1:9798",
		LogFormat:       logJSON,
		Lease: LeaseOptions{
			Namespace: "kms-health", Identity: identity(),
			Duration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		},
		Stream: StreamOptions{Contract: string(publish.Conditions)},
	}
}

// identity differs between two processes of one host, and between two lives of one process id.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s_%s", host, uuid.NewString())
}

// AddFlags registers the flags with o's values as defaults.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "kubeconfig file; empty for the in-cluster configuration")
	f.StringVar(&o.Operator, "operator", o.Operator, "whose reports to roll up: kubeapiserver, openshiftapiserver or authentication")
	f.DurationVar(&o.Interval, "interval", o.Interval, "the reporters' interval; a report is stale after 4 of them")
	f.StringVar(&o.NodeSelector, "node-selector", o.NodeSelector, "label selector of the nodes that should report")
	f.StringVar(&o.PodSelector, "pod-selector", o.PodSelector, "label selector of the API server pods whose nodes should report, instead of --node-selector")
	f.StringVar(&o.PodNamespace, "pod-namespace", o.PodNamespace, "namespace of --pod-selector")
	f.StringVar(&o.PodNodeLabel, "pod-node-label", o.PodNodeLabel, "label of those pods that names the node that they report for; empty: the node that they run on")
	f.StringVar(&o.KMSActive, "kms-active", o.KMSActive, "auto: as apiservers.config.openshift.io/cluster says; always: do not look there")
	f.StringSliceVar(&o.Inertia, "degraded-inertia", o.Inertia, "how long a condition must be True or Unknown before the ClusterOperator's Degraded shows it: a duration, and TYPE=DURATION for single types, such as 2m,NodeControllerDegraded=10m (default none)")
	f.StringVar(&o.UnknownStatus, "unknown-status", o.UnknownStatus, "yields: a condition that is Unknown yields to bad ones in the ClusterOperator; is-bad: it is one of the bad ones, as in library-go")
	f.StringVar(&o.ClusterOperator, "cluster-operator", o.ClusterOperator, "unite: write the union of the conditions to the ClusterOperator; leave: the status controller of another program does")
	f.StringVar(&o.MetricsAddress, "metrics-address", o.MetricsAddress, "host:port of /metrics, /healthz and /readyz; empty for none")
	f.StringVar(&o.LogFormat, "log-format", o.LogFormat, "json or text")
	f.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "work only while holding a lease")
	f.StringVar(&o.Lease.Namespace, "leader-elect-namespace", o.Lease.Namespace, "namespace of the lease")
	f.StringVar(&o.Lease.Name, "leader-elect-name", o.Lease.Name, "name of the lease; default kms-health-aggregator-OPERATOR")
	f.StringVar(&o.Lease.Identity, "leader-elect-identity", o.Lease.Identity, "holder identity, unique per process")
	f.DurationVar(&o.Lease.Duration, "leader-elect-lease-duration", o.Lease.Duration, "a standby takes over this long after the last renewal")
	f.DurationVar(&o.Lease.RenewDeadline, "leader-elect-renew-deadline", o.Lease.RenewDeadline, "a leader that could not renew for this long stops leading")
	f.DurationVar(&o.Lease.RetryPeriod, "leader-elect-retry-period", o.Lease.RetryPeriod, "time between two tries to acquire or renew")
	f.StringVar(&o.Stream.Address, "stream-address", o.Stream.Address, "serve the streams of reporters (--publish stream) on this host:port; empty for none")
	f.StringVar(&o.Stream.Certificate, "stream-certificate", o.Stream.Certificate, "PEM file of the serving certificate, for the name "+contract.AggregatorServerName)
	f.StringVar(&o.Stream.Key, "stream-key", o.Stream.Key, "PEM file of its key")
	f.StringVar(&o.Stream.ClientCA, "stream-client-ca", o.Stream.ClientCA, "PEM file of the authority that signs the reporters' certificates")
	f.StringVar(&o.Stream.Contract, "stream-contract", o.Stream.Contract, "form in which streamed reports are written: conditions or healthreports")
}

// leaseName is the lease's name; one per operator, since each has an aggregator of its own.
func (o Options) leaseName() string {
	if o.Lease.Name != "" {
		return o.Lease.Name
	}
	return "kms-health-aggregator-" + o.Operator
}
