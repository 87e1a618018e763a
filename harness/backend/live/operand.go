package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/harness/history"
)

// operandUser is who writes what a cluster around an operator writes.
const operandUser = "kmsharness-operand"

// underTest reports whether the operator is one under test. What it leaves behind may be readable with no key that is there, ConfigMaps of kube-system
// included, so the control plane serves no other scenario.
func (p *pods) underTest() bool { return p != nil && p.operand != nil }

// operandOptions are those of the cluster around an operator under test.
func (p *pods) operandOptions(log *slog.Logger) (operand.Options, error) {
	rest, err := p.e.controlPlane.RESTConfig(operandUser, []string{"system:masters"}, p.e.controlPlane.ClientServer())
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
	return operand.Options{Client: client, Dynamic: dyn, Pods: p, Clock: clock.RealClock{}, Observed: p.observed, Log: log}, nil
}

// prepareOperand makes an operator under test a unit, and begins what is around it.
func (p *pods) prepareOperand(ctx context.Context) error {
	log, err := os.OpenFile(p.operandLog(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("log of the cluster around the operator: %w", err)
	}
	o, err := p.operandOptions(slog.New(slog.NewTextHandler(log, nil)))
	if err == nil {
		err = operand.Prepare(ctx, o)
	}
	if err == nil {
		err = p.operatorProgram()
	}
	if err != nil {
		return errors.Join(err, log.Close())
	}
	p.operand = operand.New(o)
	p.work.Go(func() {
		defer log.Close()
		p.operand.Run(p.ctx)
	})
	return nil
}

// operatorProgram is the operator under test as a process. It has the rights of an administrator, and reaches the API as an aggregator does.
func (p *pods) operatorProgram() error {
	at := p.e.controlPlane.AggregatorPlace(1)
	kubeconfig, err := p.e.sut.kubeconfig(at, "operator", operatorUser, []string{"system:masters"})
	if err != nil {
		return fmt.Errorf("kubeconfig of the operator: %w", err)
	}
	p.operator.Unit = at.Unit(p.operator.Identity, func(context.Context) (Command, error) {
		return p.e.sut.command(p.e.opts.OperatorCommand, p.e.sut.commonValues(at, kubeconfig), "operator")
	})
	return nil
}

// operandLog is the log of what is around an operator under test.
func (p *pods) operandLog() string { return p.logFile() + ".cluster" }

// observed leaves in the history what the objects of an operator under test say.
func (p *pods) observed(d *history.Decision) {
	p.mu.Lock()
	news := p.decided == nil || !operated.Same(*p.decided, *d)
	p.decided = d
	p.mu.Unlock()
	if news {
		p.e.record(d)
	}
	p.switching(d.Stage != "")
}

// Migrate implements operand.Pods. Everything is migrated when every encrypted resource was, under the same revision.
func (p *pods) Migrate(ctx context.Context, resource schema.GroupVersionResource) error {
	ctx, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	under := p.newest().revision
	if err := p.e.data.rewriteAll(ctx, resource); err != nil {
		return fmt.Errorf("migrate the data: %w", err)
	}
	p.mu.Lock()
	if p.migrated.under != under {
		p.migrated.under, p.migrated.resources = under, nil
	}
	p.migrated.resources = append(p.migrated.resources, resource)
	all := !slices.ContainsFunc(p.e.data.kinds(), func(k Encrypted) bool { return !slices.Contains(p.migrated.resources, k.Resource) })
	p.mu.Unlock()
	if !all {
		return nil
	}
	p.e.record(&history.Encryption{State: history.EncryptionMigrated, Providers: p.newest().providers})
	return p.e.data.takeInventory(ctx)
}
