// Package command is the program encryption-operator: its flags, and how it is put together.
package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kmsharness/kmsharness/internal/election"
	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/internal/version"
	"github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/staticpods"
)

// Requests a second to the API, and how many at once. A step makes up to fifteen, with three nodes.
const (
	requests = 50
	burst    = 100
)

// Main is the program on a host. It returns its exit code.
func Main(ctx context.Context, h host.Host, args []string, stdout, stderr io.Writer) int {
	if version.Asked("encryption-operator", args, stdout) {
		return 0
	}
	o, err := parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	if err != nil {
		return entry.Exit(stderr, "encryption-operator", entry.ExitUsage, err)
	}
	return entry.Exit(stderr, "encryption-operator", entry.ExitFailed, operate(ctx, h, o, stderr))
}

type options struct {
	core.Options
	kubeconfig  string
	leaderElect bool
	lease       election.Options
}

// parse reads a command line.
func parse(args []string) (opts options, err error) {
	opts = options{Options: core.DefaultOptions(), lease: election.Defaults(staticpods.OperatorNamespace, "encryption-operator-lock")}
	flags := pflag.NewFlagSet("encryption-operator", pflag.ContinueOnError)
	flags.StringVar(&opts.kubeconfig, "kubeconfig", "", "a kubeconfig; empty: that of the cluster that it runs in")
	flags.DurationVar(&opts.Interval, "interval", opts.Interval, "interval of the reporters; it decides when a report is stale")
	flags.DurationVar(&opts.Settle, "settle", opts.Settle, "how long all nodes must report a new kekID before everything is encrypted anew under it")
	flags.DurationVar(&opts.Retry, "retry", opts.Retry, "pause after a pre-flight check that failed")
	flags.IntVar(&opts.Keep, "keep", opts.Keep, "how many old revisions, and unused keys, are kept")
	flags.BoolVar(&opts.leaderElect, "leader-elect", opts.leaderElect, "work only while holding a lease")
	opts.lease.AddFlags(flags, opts.lease.Name)
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("%q: expected flags only", flags.Arg(0))
	case opts.Interval <= 0:
		err = fmt.Errorf("--interval %v: expected a time above 0", opts.Interval)
	case opts.Settle < 0:
		err = fmt.Errorf("--settle %v: expected 0 or more", opts.Settle)
	case opts.Retry <= 0:
		err = fmt.Errorf("--retry %v: expected a time above 0", opts.Retry)
	case opts.Keep < 1:
		err = fmt.Errorf("--keep %d: expected 1 or more", opts.Keep)
	case opts.leaderElect:
		if wrong := opts.lease.Validate(); len(wrong) > 0 {
			err = wrong[0]
		}
	}
	return opts, err
}

// connection is how the API server is reached.
func connection(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("expected --kubeconfig outside of a cluster: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %q: %w", kubeconfig, err)
	}
	return config, nil
}

// operate runs the operator until ctx ends, or whenever it leads.
func operate(ctx context.Context, h host.Host, opts options, stderr io.Writer) error {
	config, err := connection(opts.kubeconfig)
	if err != nil {
		return err
	}
	config.Dial, config.QPS, config.Burst = h.DialFunc, requests, burst
	config.Wrap(h.Wrap)
	log := slog.New(slog.NewTextHandler(stderr, nil))
	work := func(ctx context.Context) error { return work(ctx, h, config, opts.Options, log) }
	if opts.leaderElect {
		leases, err := coordination.NewForConfig(config)
		if err != nil {
			return fmt.Errorf("client for leases: %w", err)
		}
		return opts.lease.Lead(ctx, leases, log, work)
	}
	return work(ctx)
}

// work decides from what it finds in the API, until ctx ends.
func work(ctx context.Context, h host.Host, config *rest.Config, opts core.Options, log *slog.Logger) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	encrypted := []string{"configmaps", "secrets"}
	op, err := operator.New(operator.Options{REST: config, Component: staticpods.Component, Resource: staticpods.OperatorResource(), Kind: "KubeAPIServer", Core: opts,
		Encrypted: encrypted, Executor: &staticpods.Executor{Client: client, Dynamic: dyn, Encrypted: encrypted}, Clock: h.Clock(), Random: rand.Reader,
		Log: log, Decide: staticpods.Decide})
	if err != nil {
		return err
	}
	return op.Run(ctx)
}
