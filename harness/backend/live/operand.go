package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/history"
	lifecycle "github.com/kmsharness/kmsharness/operator"
)

// operandUser is who writes what a cluster around an operator writes.
const operandUser = "kmsharness-operand"

// operatorUnderTest is an operator that is a program of its own, and the cluster around it. It does to the pods what this project's operator does.
type operatorUnderTest struct {
	*pods
	cluster *operand.Cluster
}

// podsUnderTest are the pods as the cluster around the operator handles them.
type podsUnderTest struct {
	lifecycle.Executor
	*operatorUnderTest
}

var _ operand.Pods = podsUnderTest{}

// Anew implements operand.Pods.
func (p podsUnderTest) Anew() bool { return p.installer != nil }

// underTest reports whether the operator is one under test. What it leaves behind may be readable with no key that is there, ConfigMaps of kube-system
// included, so the control plane serves no other scenario.
func (p *pods) underTest() bool { return p != nil && p.tested != nil }

// testOperator makes an operator under test the operator of the pods, as a unit, and begins what is around it.
func (p *pods) testOperator(ctx context.Context) error {
	o := &operatorUnderTest{pods: p}
	log, err := os.OpenFile(p.logFile()+".cluster", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("log of the cluster around the operator: %w", err)
	}
	options, err := o.options(slog.New(slog.NewTextHandler(log, nil)))
	if err == nil {
		err = operand.Prepare(ctx, options)
	}
	if err == nil {
		err = o.program()
	}
	if err != nil {
		return errors.Join(err, log.Close())
	}
	o.cluster = operand.New(options)
	p.tested = o
	p.work.Go(func() {
		defer log.Close()
		o.cluster.Run(p.ctx)
	})
	return nil
}

// options are those of the cluster around the operator.
func (o *operatorUnderTest) options(log *slog.Logger) (operand.Options, error) {
	rest, err := o.e.controlPlane.RESTConfig(operandUser, []string{"system:masters"}, o.e.controlPlane.ClientServer())
	if err != nil {
		return operand.Options{}, fmt.Errorf("cluster around the operator: %w", err)
	}
	rest.QPS, rest.Burst = operatorRequests, operatorRequests
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return operand.Options{}, fmt.Errorf("cluster around the operator: %w", err)
	}
	dyn, err := dynamic.NewForConfig(rest)
	if err != nil {
		return operand.Options{}, fmt.Errorf("cluster around the operator: %w", err)
	}
	return operand.Options{Whole: o.e.opts.WholeOperator(), CA: rest.CAData, Client: client, Dynamic: dyn, Pods: podsUnderTest{o.executor(), o}, Clock: clock.RealClock{}, Observed: o.decidedOn, Log: log}, nil
}

// OperatorPlacer is a control plane with a place of its own for an operator under test, which else runs where the first aggregator does.
type OperatorPlacer interface{ OperatorPlace() Place }

// program makes the operator a process. It has the rights of an administrator, and reaches the API as an aggregator does.
func (o *operatorUnderTest) program() error {
	at := o.e.controlPlane.AggregatorPlace(1)
	if p, ok := o.e.controlPlane.(OperatorPlacer); ok {
		at = p.OperatorPlace()
	}
	if at.LogFile != "" {
		if err := o.e.operated.searchLog(at.LogFile); err != nil {
			return err
		}
	}
	kubeconfig, err := o.e.sut.kubeconfig(at, "operator", operatorUser, []string{"system:masters"})
	if err != nil {
		return fmt.Errorf("kubeconfig of the operator: %w", err)
	}
	o.operator.Unit = at.Unit(o.operator.Identity, func(context.Context) (Command, error) {
		return o.e.sut.command(o.e.opts.OperatorCommand, o.e.sut.commonValues(at, kubeconfig), "operator")
	})
	return nil
}

// Migrate implements operand.Pods.
func (o *operatorUnderTest) Migrate(ctx context.Context, resource schema.GroupVersionResource) error {
	ctx, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	return o.e.data.rewriteAll(ctx, resource, asInOpenShift())
}

// Migrated implements operand.Pods.
func (o *operatorUnderTest) Migrated(ctx context.Context) error {
	all, err := o.e.data.under(ctx)
	if err != nil {
		return fmt.Errorf("look at what lies in etcd: %w", err)
	}
	o.e.record(&history.Encryption{State: history.EncryptionMigrated, Providers: o.newest().providers})
	o.e.record(&history.StorageInventory{Under: all})
	return nil
}
