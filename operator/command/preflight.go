package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/preflight"
)

// PreflightCommand is the program of a pre-flight pod. Its flags are those of OpenShift's, and two more.
const PreflightCommand = "kms-preflight"

// preflightTimes are how often, and for how long, a plugin is asked that is not well.
const (
	preflightPoll    = 2 * time.Second
	preflightTimeout = 30 * time.Second
)

type preflightOptions struct {
	sockets                          []string
	hash, pod, namespace, kubeconfig string
	call, poll, timeout              time.Duration
}

// PreflightCheck checks the plugin behind a client.
type PreflightCheck = func(ctx context.Context, c kmsapi.KeyManagementServiceClient, hash string, o preflight.Options) core.Preflight

// PreflightMain checks plugins, the first with a check, and leaves the result in the conditions of its pod.
func PreflightMain(ctx context.Context, h host.Host, args []string, stderr io.Writer, check PreflightCheck) int {
	o, err := parsePreflight(args)
	if errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	if err != nil {
		return entry.Exit(stderr, PreflightCommand, entry.ExitUsage, err)
	}
	return entry.Exit(stderr, PreflightCommand, entry.ExitFailed, o.run(ctx, h, check))
}

func parsePreflight(args []string) (o preflightOptions, err error) {
	flags := pflag.NewFlagSet(PreflightCommand, pflag.ContinueOnError)
	flags.StringSliceVar(&o.sockets, "kms-sockets", nil, "sockets of plugins, unix:///PATH: the first gets the whole check, the others Status")
	flags.DurationVar(&o.call, "kms-call-timeout", 10*time.Second, "how long a call may take")
	flags.DurationVar(&o.poll, "poll", preflightPoll, "pause between two calls of Status")
	flags.DurationVar(&o.timeout, "timeout", preflightTimeout, "how long the check may take")
	flags.StringVar(&o.hash, "config-hash", "", "of the configuration that is checked")
	flags.StringVar(&o.pod, "pod-name", "", "its own pod")
	flags.StringVar(&o.namespace, "pod-namespace", "", "of its own pod")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "a kubeconfig; empty: that of the cluster that it runs in")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("%q: expected flags only", flags.Arg(0))
	case len(o.sockets) == 0 || o.hash == "" || o.pod == "" || o.namespace == "":
		err = errors.New("expected --kms-sockets, --config-hash, --pod-name and --pod-namespace")
	case o.call <= 0 || o.poll <= 0 || o.timeout <= 0:
		err = errors.New("--kms-call-timeout, --poll and --timeout: expected times above 0")
	}
	return o, err
}

func (o preflightOptions) run(ctx context.Context, h host.Host, check PreflightCheck) error {
	result := o.check(ctx, h, check)
	if err := o.publish(ctx, h, result); err != nil {
		return fmt.Errorf("result of the check in pod %s/%s: %w", o.namespace, o.pod, err)
	}
	if !result.OK {
		return errors.New(result.Message)
	}
	return nil
}

// check is the result of the first plugin, or of the first that fails.
func (o preflightOptions) check(ctx context.Context, h host.Host, check PreflightCheck) (result core.Preflight) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	options := preflight.Options{Clock: h.Clock(), Random: rand.Reader, UID: uuid.NewString, Pause: o.poll, Call: o.call}
	for i, socket := range o.sockets {
		conn, err := grpc.NewClient("passthrough:///"+strings.TrimPrefix(socket, "unix://"), grpc.WithAuthority("localhost"), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) { return h.Dial(ctx, "unix", path) }))
		if err != nil {
			return core.Preflight{Hash: o.hash, Message: err.Error()}
		}
		if i > 0 {
			check = preflight.CheckStatus
		}
		now := check(ctx, kmsapi.NewKeyManagementServiceClient(conn), o.hash, options)
		_ = conn.Close() // nothing is under way
		if i > 0 && !now.OK {
			now.KEK, now.Message = result.KEK, filepath.Base(socket)+": "+now.Message
		}
		if i == 0 || !now.OK {
			result = now
		}
		if !now.OK {
			break
		}
	}
	return result
}

func (o preflightOptions) publish(ctx context.Context, h host.Host, result core.Preflight) error {
	rest, err := connection(o.kubeconfig)
	if err != nil {
		return err
	}
	rest.Dial = h.DialFunc
	rest.Wrap(h.Wrap)
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return err
	}
	pods := client.CoreV1().Pods(o.namespace)
	write := func() error {
		pod, err := pods.Get(ctx, o.pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, operator.IsPreflight) // of an earlier check
		pod.Status.Conditions = append(pod.Status.Conditions, operator.PreflightConditions(result, metav1.NewTime(h.Clock().Now()))...)
		_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{FieldManager: PreflightCommand})
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	for { // an API server may be away for a moment, and the result be lost
		err = retry.RetryOnConflict(retry.DefaultBackoff, write)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			return err
		}
		timer := h.Clock().NewTimer(o.poll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C():
		}
	}
}
