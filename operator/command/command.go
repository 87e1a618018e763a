// Package command is the program encryption-operator: its flags, and how it is put together.
package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kmsharness/kmsharness/internal/election"
	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/internal/version"
	"github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/preflight"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Requests a second to the API, and how many at once. A step makes up to fifteen, with three nodes.
const (
	requests = 50
	burst    = 100
)

// Configure changes what an operator is made with, after the flags were read.
type Configure func(*operator.Options)

// Main is the program on a host. It returns its exit code.
func Main(ctx context.Context, h host.Host, args []string, stdout, stderr io.Writer, configure ...Configure) int {
	if version.Asked("encryption-operator", args, stdout) {
		return 0
	}
	if len(args) > 0 && args[0] == PreflightCommand {
		return PreflightMain(ctx, h, args[1:], stderr, preflight.Check)
	}
	o, err := parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	if err != nil {
		return entry.Exit(stderr, "encryption-operator", entry.ExitUsage, err)
	}
	return entry.Exit(stderr, "encryption-operator", entry.ExitFailed, operate(ctx, h, o, stderr, configure...))
}

type options struct {
	core.Options
	operator.APIServer
	config      config.Options
	check       time.Duration
	kubeconfig  string
	leaderElect bool
	lease       election.Options
}

// parse reads a command line.
func parse(args []string) (opts options, err error) {
	opts = options{Options: core.DefaultOptions(), lease: election.Defaults("", "encryption-operator-lock")}
	var name, migrator string
	var encrypted []string
	flags := pflag.NewFlagSet("encryption-operator", pflag.ContinueOnError)
	flags.StringVar(&opts.kubeconfig, "kubeconfig", "", "a kubeconfig; empty: that of the cluster that it runs in")
	flags.StringVar(&name, "operator", "kubeapiserver", "the operator that it is: kubeapiserver, openshiftapiserver or authentication")
	flags.StringSliceVar(&encrypted, "encrypt", nil, "resources that are encrypted, for example secrets,routes.v1.route.openshift.io; empty: those that OpenShift encrypts")
	flags.BoolVar(&opts.config.BeforeKMS, "before-kms", opts.config.BeforeKMS, "behave as a release from before KMS does")
	flags.DurationVar(&opts.Interval, "interval", opts.Interval, "interval of the reporters; it decides when a report is stale")
	flags.DurationVar(&opts.Settle, "settle", opts.Settle, "how long all nodes must report a new kekID before everything is encrypted anew under it")
	flags.DurationVar(&opts.Retry, "retry", opts.Retry, "pause after a pre-flight check that failed")
	flags.DurationVar(&opts.check, "check-timeout", 30*time.Second, "how long a pre-flight check may take")
	flags.StringVar(&migrator, "migrator", revision.MigratorOpenShift, "whose StorageVersionMigrations it makes: openshift, migration.k8s.io/v1alpha1; kubernetes, storagemigration.k8s.io/v1")
	flags.BoolVar(&opts.KeepRead, "keep-read-key", opts.KeepRead, "keep the key of before a switch for reading until the next one, as a snapshot of etcd may need it")
	flags.IntVar(&opts.Keep, "keep", opts.Keep, "how many old revisions, and unused keys, are kept")
	flags.BoolVar(&opts.leaderElect, "leader-elect", opts.leaderElect, "work only while holding a lease")
	opts.lease.AddFlags(flags, opts.lease.Name)
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if opts.APIServer, err = operator.APIServerOf(name); err != nil {
		return opts, fmt.Errorf("--operator: %w", err)
	}
	opts.Migrations = revision.MigrationsOf(migrator)
	if opts.lease.Namespace == "" {
		opts.lease.Namespace = opts.OperatorNamespace
	}
	if len(encrypted) > 0 {
		opts.Encrypted = nil
	}
	for _, text := range encrypted {
		r, err := resource(text)
		if err != nil {
			return opts, fmt.Errorf("--encrypt: %w", err)
		}
		opts.Encrypted = append(opts.Encrypted, r)
	}
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("%q: expected flags only", flags.Arg(0))
	case migrator != revision.MigratorOpenShift && migrator != revision.MigratorKubernetes:
		err = fmt.Errorf("--migrator %q: expected %s or %s", migrator, revision.MigratorOpenShift, revision.MigratorKubernetes)
	case opts.Interval <= 0:
		err = fmt.Errorf("--interval %v: expected a time above 0", opts.Interval)
	case opts.Settle < 0:
		err = fmt.Errorf("--settle %v: expected 0 or more", opts.Settle)
	case opts.Retry <= 0:
		err = fmt.Errorf("--retry %v: expected a time above 0", opts.Retry)
	case opts.check <= 0:
		err = fmt.Errorf("--check-timeout %v: expected a time above 0", opts.check)
	case opts.Keep < 1:
		err = fmt.Errorf("--keep %d: expected 1 or more", opts.Keep)
	case opts.leaderElect:
		if wrong := opts.lease.Validate(); len(wrong) > 0 {
			err = wrong[0]
		}
	}
	return opts, err
}

// resource reads NAME of the core group, or NAME.VERSION.GROUP.
func resource(text string) (schema.GroupVersionResource, error) {
	if r, _ := schema.ParseResourceArg(text); r != nil {
		return *r, nil
	}
	if text == "" || strings.Contains(text, ".") {
		return schema.GroupVersionResource{}, fmt.Errorf("%q: expected NAME of the core group, or NAME.VERSION.GROUP", text)
	}
	return schema.GroupVersionResource{Version: "v1", Resource: text}, nil
}

// connection is how the API server is reached. API servers see a name that does not depend on the file of the program, which is client-go's.
func connection(kubeconfig string) (config *rest.Config, err error) {
	if kubeconfig == "" {
		if config, err = rest.InClusterConfig(); err != nil {
			return nil, fmt.Errorf("expected --kubeconfig outside of a cluster: %w", err)
		}
	} else if config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return nil, fmt.Errorf("read the kubeconfig %q: %w", kubeconfig, err)
	}
	config.UserAgent = "encryption-operator"
	return config, nil
}

// operate runs the operator until ctx ends, or whenever it leads.
func operate(ctx context.Context, h host.Host, opts options, stderr io.Writer, configure ...Configure) error {
	rest, err := connection(opts.kubeconfig)
	if err != nil {
		return err
	}
	rest.Dial, rest.QPS, rest.Burst = h.DialFunc, requests, burst
	rest.Wrap(h.Wrap)
	log := slog.New(slog.NewTextHandler(stderr, nil))
	o := operator.Options{APIServer: opts.APIServer, REST: rest, Core: opts.Options, Config: opts.config, Check: opts.check, Clock: h.Clock(), Random: rand.Reader, Log: log}
	for _, change := range configure {
		change(&o)
	}
	work := func(ctx context.Context) error {
		op, err := operator.New(o)
		if err != nil {
			return err
		}
		return op.Run(ctx)
	}
	if !opts.leaderElect {
		return work(ctx)
	}
	leases, err := coordination.NewForConfig(rest)
	if err != nil {
		return fmt.Errorf("client for leases: %w", err)
	}
	return opts.lease.Lead(ctx, leases, log, work)
}
