// Package openshift is a reporter of the shape that OpenShift ships (docs/contract.md, the typed form), is otherwise correct, and shares no code
// with this project's own: what the harness says of it is said of the shape. It writes the typed form only, into the operator CR of kube-apiserver, has no metrics
// and no flag for its jitter, and insists on the socket paths of a static pod. --mistake gives it one mistake.
package openshift

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/reporter"
	reporteroptions "github.com/kmsharness/kmsharness/reporter/options"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// jitter is a part of the interval.
const jitter = 0.1

// options are the flags of what ships, and the mistake.
type options struct {
	sockets                             []string
	interval, readTimeout, writeTimeout time.Duration
	node, kubeconfig, mistake           string
	backOff                             bool
	host                                host.Host
}

// Main runs a reporter on a host, until ctx ends.
func Main(ctx context.Context, h host.Host, args []string, _, stderr io.Writer) int {
	return entry.Exit(stderr, "openshift-reporter", entry.ExitFailed, run(ctx, h, args, stderr))
}

func run(ctx context.Context, h host.Host, args []string, stderr io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	o.host = h
	config, err := reporter.Connection(h, reporteroptions.Options{Kubeconfig: o.kubeconfig})
	if err != nil {
		return err
	}
	if o.mistake == credentialOnce {
		if err := rest.LoadTLSFiles(config); err != nil {
			return fmt.Errorf("read the credential: %w", err)
		}
		config.CertFile, config.KeyFile = "", ""
	}
	if err := publish.OwnTransport(config); err != nil { // of a machine in memory alone
		return err
	}
	w, err := newWriter(config, o)
	if err != nil {
		return err
	}
	p, err := newProber(o)
	if err != nil {
		return err
	}
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		if err := w.write(ctx, p.all(ctx)); err != nil {
			fmt.Fprintln(stderr, "write the reports:", err)
		}
	}, o.interval, jitter, false)
	if o.mistake == removedAtEnd {
		return w.apply(context.Background(), nil)
	}
	for range 2 {
		if o.mistake == writesAtEnd {
			err = errors.Join(err, w.write(context.Background(), p.all(context.Background())))
		}
	}
	return err
}

// socket is where a plugin listens; its number is the keyID.
var socket = regexp.MustCompile(`^unix:///var/run/kmsplugin/kms-(\d+)\.sock$`)

func parse(args []string) (o options, err error) {
	flags := pflag.NewFlagSet("openshift-reporter", pflag.ContinueOnError)
	flags.StringSliceVar(&o.sockets, "kms-sockets", nil, "endpoints of the plugins: unix:///var/run/kmsplugin/kms-N.sock")
	flags.DurationVar(&o.interval, "interval", 30*time.Second, "from the beginning of one round of probes to that of the next, but for the jitter")
	flags.DurationVar(&o.readTimeout, "read-timeout", 5*time.Second, "deadline of a probe")
	flags.DurationVar(&o.writeTimeout, "write-timeout", 10*time.Second, "deadline of a write")
	flags.StringVar(&o.node, "node-name", "", "name of the node")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "a kubeconfig; empty: that of the cluster that it runs in")
	flags.BoolVar(&o.backOff, "back-off", false, "after repeated failures of a plugin call it in every second interval only, as the enhancement asks for: after four a report is stale")
	flags.StringVar(&o.mistake, "mistake", "", "one of "+strings.Join(mistakes(), ", "))
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case len(o.sockets) == 0 || o.node == "":
		return o, errors.New("expected --kms-sockets and --node-name")
	case o.interval <= 0 || o.readTimeout <= 0 || o.writeTimeout <= 0:
		return o, errors.New("expected --interval, --read-timeout and --write-timeout above 0")
	case o.mistake != "" && !slices.Contains(mistakes(), o.mistake):
		return o, fmt.Errorf("--mistake %q: expected one of %s", o.mistake, strings.Join(mistakes(), ", "))
	}
	for i, s := range o.sockets {
		if !socket.MatchString(s) {
			return o, fmt.Errorf("--kms-sockets %q: expected %s", s, socket)
		}
		if slices.Contains(o.sockets[:i], s) {
			return o, fmt.Errorf("--kms-sockets: %q is there twice", s)
		}
	}
	return o, nil
}

// Mistakes that it can be given.
const (
	keyIDLeftOut   = "remote-key-id-left-out" // of a plugin that is not healthy, as in what shipped in August 2026
	detailAsItCame = "detail-as-it-came"
	sharedManager  = "shared-field-manager"
	failedQueue    = "failed-writes-queued"
	grpcBackOff    = "grpc-back-off"
	writesAtEnd    = "writes-after-sigterm"
	socketsByScan  = "sockets-found-by-scan"
	removedAtEnd   = "report-removed-at-its-end"
	managerWithPID = "field-manager-with-its-pid"
	credentialOnce = "credential-read-once"
)

func mistakes() []string {
	return []string{keyIDLeftOut, detailAsItCame, sharedManager, failedQueue, grpcBackOff, writesAtEnd, socketsByScan, removedAtEnd, managerWithPID, credentialOnce}
}
