// Command plain-operator is an encryption operator in another style than this project's own (scenarios/mutants/plainoperator), for --operator-command.
// It reads everything, decides one step, carries it out, applies its conditions, and begins again after the interval. --defect gives it one mistake.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kmsharness/kmsharness/scenarios/mutants/plainoperator"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "plain-operator:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("plain-operator", pflag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "a kubeconfig; empty: that of the cluster that it runs in")
	component := flags.String("component", "openshift-kube-apiserver", "the API server: the namespace of its pods, and a part of the names of Secrets")
	interval := flags.Duration("interval", time.Second, "time between two passes")
	name := flags.String("defect", "", "one of "+strings.Join(defects(), ", "))
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *interval <= 0 {
		return errors.New("expected --interval above 0")
	}
	defect, err := defectNamed(*name)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig %q: %w", *kubeconfig, err)
	}
	e, err := newEdge(config, *component, defect)
	if err != nil {
		return err
	}
	wait.UntilWithContext(ctx, e.pass, *interval)
	return nil
}

func defects() (names []string) {
	for _, d := range plainoperator.Defects() {
		names = append(names, d.Name)
	}
	return names
}

func defectNamed(name string) (plainoperator.Defect, error) {
	if name == "" {
		return plainoperator.Defect{}, nil
	}
	i := slices.Index(defects(), name)
	if i < 0 {
		return plainoperator.Defect{}, fmt.Errorf("--defect %q: expected one of %s", name, strings.Join(defects(), ", "))
	}
	return plainoperator.Defects()[i], nil
}

// passTimeout bounds the requests of one pass.
const passTimeout = 30 * time.Second

// pass is one pass of the loop.
func (e *edge) pass(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	s, err := e.read(ctx)
	if err != nil {
		slog.Error("read the cluster", "error", err)
		if s.cr.Name != "" {
			e.logged("apply the conditions", e.publish(ctx, s, plainoperator.Unread(err)))
		}
		return
	}
	d := e.operator.Decide(s.Observed)
	if d.Step.Do != "" {
		if err = e.carry(ctx, s, d.Step); err != nil {
			err = fmt.Errorf("%s: %w", d.Step.Do, err)
		}
		slog.Info(string(d.Step.Do), "key", d.Step.Key, "resource", d.Step.Resource, "hash", d.Step.Hash, "providers", d.Step.File.Resources, "error", err)
	}
	e.logged("apply the conditions", e.publish(ctx, s, e.operator.Report(err)))
}

func (e *edge) logged(what string, err error) {
	if err != nil {
		slog.Error(what, "error", err)
	}
}
