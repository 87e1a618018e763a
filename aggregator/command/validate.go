package command

import (
	"fmt"
	"net"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/alternatives"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// Validate says what is wrong with the flags: one line per mistake, all of them at once.
func (o Options) Validate() []error {
	var c checks
	c.that(o.Connectivity == connectService || o.Connectivity == connectAltSvc, "--connectivity %q: expected service or altsvc", o.Connectivity)
	if err := alternatives.Validate(o.Alternatives, o.Connectivity); err != nil {
		c.errs = append(c.errs, err)
	}
	_, err := core.OperatorByName(o.Operator)
	c.noError("--operator", err)
	c.positive("--interval", o.Interval)
	_, err = labels.Parse(o.NodeSelector)
	c.noError("--node-selector", err)
	_, err = labels.Parse(o.PodSelector)
	c.noError("--pod-selector", err)
	c.that(o.PodSelector == "" || o.PodNamespace != "", "--pod-selector %q: needs --pod-namespace", o.PodSelector)
	c.that(o.PodNamespace == "" || o.PodSelector != "", "--pod-namespace %q: needs --pod-selector", o.PodNamespace)
	c.that(o.PodNodeLabel == "" || o.PodSelector != "", "--pod-node-label %q: needs --pod-selector", o.PodNodeLabel)
	c.that(o.KMSActive == kmsAuto || o.KMSActive == kmsAlways, "--kms-active %q: expected auto or always", o.KMSActive)
	c.that(contract.AggregatorProfileOf(o.Profile).Name == o.Profile, "--profile %q: expected rollups or convergence", o.Profile)
	_, err = contract.ParseInertia(o.Inertia)
	c.noError("--degraded-inertia", err)
	c.that(o.ClusterOperator == operatorUnite || o.ClusterOperator == operatorLeave, "--cluster-operator %q: expected unite or leave", o.ClusterOperator)
	c.that(o.LogFormat == logJSON || o.LogFormat == logText, "--log-format %q: expected json or text", o.LogFormat)
	if o.MetricsAddress != "" {
		_, _, err := net.SplitHostPort(o.MetricsAddress)
		c.that(err == nil, "--metrics-address %q: expected host:port, or nothing for none", o.MetricsAddress)
	}
	c.stream(o.Stream)
	if o.LeaderElect {
		c.errs = append(c.errs, o.lease().Validate()...)
	}
	return c.errs
}

type checks struct{ errs []error }

func (c *checks) that(ok bool, format string, args ...any) {
	if !ok {
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	}
}

func (c *checks) noError(flag string, err error) { c.that(err == nil, "%s: %v", flag, err) }

func (c *checks) positive(flag string, d time.Duration) {
	c.that(d > 0, "%s %v: must be positive", flag, d)
}

func (c *checks) stream(o StreamOptions) {
	c.that(slices.Contains(publish.Forms(), publish.Form(o.Contract)), "--stream-contract %q: expected conditions or healthreports", o.Contract)
	if o.Address == "" {
		c.that(o.Certificate == "" && o.Key == "" && o.ClientCA == "", "--stream-certificate, --stream-key and --stream-client-ca: need --stream-address")
		return
	}
	_, _, err := net.SplitHostPort(o.Address)
	c.that(err == nil, "--stream-address %q: expected host:port, or nothing for none", o.Address)
	c.that(o.Certificate != "" && o.Key != "" && o.ClientCA != "", "--stream-address %q: needs --stream-certificate, --stream-key and --stream-client-ca", o.Address)
}
