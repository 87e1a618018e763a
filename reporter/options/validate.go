package options

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/alternatives"
	"github.com/kmsharness/kmsharness/reporter/probe"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// validate finds all mistakes, in the order of the flags.
func (r raw) validate() (Options, []error) {
	plugins, errs := parsePlugins(r.sockets)
	o := Options{
		Plugins: plugins, Node: r.node, Kubeconfig: r.kubeconfig,
		Timing:         contract.Timing{Interval: r.interval, Jitter: r.jitter, ProbeTimeout: r.readTimeout, WriteTimeout: r.writeTimeout, AggregatorLatency: contract.DefaultTiming().AggregatorLatency},
		Form:           publish.Form(r.form),
		Publish:        Publish(r.publish),
		Aggregators:    r.aggregators,
		Connectivity:   Connectivity(r.connectivity),
		Alternatives:   r.alternatives,
		Operator:       publish.Operator(r.operator),
		MetricsAddress: r.metricsAddress, LogFormat: r.format, Verbosity: r.verbosity,
	}
	errs = append(errs, nodeErrors(o.Node)...)
	errs = append(errs, timingErrors(o.Timing)...)
	errs = append(errs,
		oneOf("contract", o.Form, publish.Forms()...),
		oneOf("publish", o.Publish, Apply, Stream),
		oneOf("connectivity", o.Connectivity, Loopback, Service, AltSvc),
		o.wayErrors(),
		alternatives.Validate(r.alternatives, r.connectivity),
		o.streamErrors(),
		oneOf("operator", o.Operator, publish.Operators()...),
		addressError(o.MetricsAddress),
		oneOf("log-format", o.LogFormat, "json", "text"),
	)
	if o.Verbosity < 0 {
		errs = append(errs, fmt.Errorf("--v %d: must not be negative", o.Verbosity))
	}
	return o, slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

func parsePlugins(sockets []string) (plugins []probe.Plugin, errs []error) {
	if len(sockets) == 0 {
		return nil, []error{errors.New("--kms-sockets is required: expected unix:///DIR/kms-KEYID.sock, comma-separated, the write key first")}
	}
	if len(sockets) > contract.MaxEntries {
		return nil, []error{fmt.Errorf("--kms-sockets has %d sockets, at most %d fit in a report", len(sockets), contract.MaxEntries)}
	}
	seen := map[string]bool{}
	for _, s := range sockets {
		p, err := probe.PluginOf(strings.TrimSpace(s))
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("--kms-sockets: %w", err))
		case seen[p.KeyID]:
			errs = append(errs, fmt.Errorf("--kms-sockets: keyID %s occurs twice", p.KeyID))
		default:
			seen[p.KeyID] = true
			plugins = append(plugins, p)
		}
	}
	return plugins, errs
}

// nodeErrors: a node name ends in a condition type, a field manager and the typed API, which wants a DNS name.
func nodeErrors(node string) []error {
	if node == "" {
		return []error{errors.New("--node-name is required")}
	}
	if len(validation.IsDNS1123Subdomain(node)) > 0 {
		return []error{fmt.Errorf("--node-name %q: expected a node's name (lower-case letters, digits, dashes and dots, at most 253)", contract.SafeText(node, 64))}
	}
	return nil
}

// wayErrors: each connectivity has one place where the way to the API server is written down.
func (o Options) wayErrors() error {
	switch {
	case o.Connectivity == Loopback && o.Kubeconfig == "":
		return errors.New("--kubeconfig is required with --connectivity loopback")
	case o.Connectivity == Service && o.Kubeconfig != "":
		return errors.New("--kubeconfig is not used with --connectivity service: leave it out")
	}
	return nil
}

// streamErrors: a reporter that streams has the addresses of the aggregator's replicas, and no way to the API server.
func (o Options) streamErrors() error {
	switch {
	case o.Publish != Stream && len(o.Aggregators) > 0:
		return errors.New("--aggregators is for --publish stream: leave it out")
	case o.Publish == Stream && len(o.Aggregators) == 0:
		return errors.New("--aggregators is required with --publish stream: host:port of the aggregator's replicas, comma-separated")
	case o.Publish == Stream && o.Connectivity != Loopback:
		return fmt.Errorf("--connectivity %s: a reporter that streams does not use the API server; leave it out", o.Connectivity)
	}
	for _, a := range o.Aggregators {
		if host, port, err := net.SplitHostPort(a); err != nil || host == "" || port == "" {
			return fmt.Errorf("--aggregators: %q: expected host:port", contract.SafeText(a, 64))
		}
	}
	return nil
}

func addressError(address string) error {
	if address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("--metrics-address %q: expected host:port", contract.SafeText(address, 64))
	}
	return nil
}

func oneOf[T ~string](flag string, value T, allowed ...T) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	return fmt.Errorf("--%s %q: expected %s", flag, contract.SafeText(string(value), 64), strings.Join(names, " or "))
}

// timingErrors says what is wrong with t, a line for each mistake, in terms of the flags.
func timingErrors(t contract.Timing) (errs []error) {
	joined, ok := t.Validate().(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	flags := strings.NewReplacer("\ninterval ", "--interval ", "\njitter ", "--jitter ", "\nprobe timeout ", "--read-timeout ", "\nwrite timeout ", "--write-timeout ")
	for _, err := range joined.Unwrap() {
		errs = append(errs, errors.New(flags.Replace("\n"+err.Error())))
	}
	return errs
}
