package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
	"github.com/kmsharness/kmsharness/harness/scenario"
	lifecycle "github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

const (
	operandUser = "kmsharness-operand"
	// operandRequests a second, more than it ever makes.
	operandRequests = 100
)

// underTest reports whether the operator is one under test. What it leaves behind may be readable with no key that is there, ConfigMaps of kube-system
// included, so the control plane serves no other scenario.
func (p *pods) underTest() bool { return p != nil && !p.own }

func (p *operatorProgram) logFile() string { return filepath.Join(p.e.logDir, "operator.log") }

// surround makes the operator a program, and begins what is around it.
func (p *pods) surround(ctx context.Context) error {
	log, err := os.OpenFile(p.logFile()+".cluster", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("log of the cluster around the operator: %w", err)
	}
	options, err := p.options(slog.New(slog.NewTextHandler(log, nil)))
	if err == nil {
		err = operand.Prepare(ctx, options)
	}
	if err == nil {
		err = p.prepare()
	}
	if err != nil {
		return errors.Join(err, log.Close())
	}
	p.cluster = operand.New(options)
	p.work.Go(func() {
		defer log.Close()
		p.cluster.Run(p.ctx)
	})
	return nil
}

// options are those of the cluster around the operator.
func (p *pods) options(log *slog.Logger) (operand.Options, error) {
	fail := func(err error) (operand.Options, error) {
		return operand.Options{}, fmt.Errorf("cluster around the operator: %w", err)
	}
	apiServer, err := lifecycle.APIServerOf(p.e.operator.Name)
	if err != nil {
		return fail(err)
	}
	apiServer.Migrations = revision.MigrationsOf(p.e.scenario.Topology.Migrator)
	rest, err := p.e.controlPlane.Credentials.RESTConfig(operandUser, []string{"system:masters"}, p.e.controlPlane.ClientServer)
	if err != nil {
		return fail(err)
	}
	rest.QPS, rest.Burst = operandRequests, operandRequests
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return fail(err)
	}
	dyn, err := dynamic.NewForConfig(rest)
	if err != nil {
		return fail(err)
	}
	return operand.Options{APIServer: apiServer, Own: p.own, Whole: p.e.opts.Operator.Full(), Surge: p.e.scenario.Topology.RollOut == scenario.RollOutSurge, CA: rest.CAData, Client: client, Dynamic: dyn, Pods: p, Clock: clock.RealClock{},
		Observed: p.decisions.observed, Log: log}, nil
}

// operatorProgram is the operator as a process.
type operatorProgram struct {
	e         *apiServer
	operator  cluster.Target
	own       bool        // it is this project's
	beforeKMS atomic.Bool // it is started of a release from before KMS
}

// prepare makes the operator a process. It has the rights of an administrator, and reaches the API as an aggregator does.
func (p *operatorProgram) prepare() error {
	at := p.e.Places.OperatorPlace()
	if at.LogFile != "" {
		if err := p.e.operated.searchLog(at.LogFile); err != nil {
			return err
		}
	}
	kubeconfig, err := p.e.sut.kubeconfig(at, cluster.NameOf(p.operator.Identity), contract.OperatorIdentity, []string{"system:masters"})
	if err != nil {
		return fmt.Errorf("kubeconfig of the operator: %w", err)
	}
	p.operator.Unit = at.Unit(p.operator.Identity, func(context.Context) (cluster.Command, error) {
		values := p.e.sut.commonValues(at, kubeconfig)
		values["checkTimeout"] = patient(operatorCheckTimeout, p.e.opts.Operator).String()
		values["migrator"] = cmp.Or(p.e.scenario.Topology.Migrator, revision.MigratorOpenShift)
		values["encrypt"], values["beforeKMS"] = p.encrypt(), strconv.FormatBool(p.beforeKMS.Load())
		own := extended(p.e.scenario.Topology.Migrator != "", released(p.e.sut.variant(p.operator.Identity), cluster.DefaultOperator), cluster.MigratingOperator)
		own = extended(p.e.scenario.Topology.ReadKey == scenario.ReadKeyKept, own, cluster.KeepingOperator)
		return p.e.sut.command(cluster.CommandOr(p.e.opts.Operator.Command, own), values, "operator")
	})
	return nil
}

// encrypt is the value of {encrypt}: the resources that the harness looks at.
func (p *operatorProgram) encrypt() string {
	r := p.e.Encrypted.Resource
	switch {
	case r.Group != "":
		return r.Resource + "." + r.Version + "." + r.Group
	case p.own:
		return r.Resource
	}
	return "configmaps," + r.Resource
}

// setRelease is of which it is started from now on; empty: as before.
func (p *operatorProgram) setRelease(name string) {
	if name != "" {
		p.beforeKMS.Store(name == scenario.ReleaseOlder)
	}
}

// decisions are what an operator's objects and its condition say.
type decisions struct {
	e    *apiServer
	load *switchLoad

	mu    sync.Mutex
	last  *history.Decision
	stage history.Condition // reason and message of what this project's operator is at
	// encrypted: Encrypted is True.
	encrypted bool
}

// observed leaves what an operator's objects say in the history if it is news, and keeps the load in step. The stage of this project's operator is the one that
// its condition names.
func (p *decisions) observed(d *history.Decision) {
	p.mu.Lock()
	if p.e.pods.own {
		d.Stage, d.Detail = p.stage.Reason, p.stage.Message
	}
	news := p.last == nil || !reflect.DeepEqual(*p.last, *d)
	p.last = d
	p.mu.Unlock()
	if news {
		p.e.record(d)
	}
	p.load.switching(d.Stage != "")
}

// staging is a sink that tells pods what is said on the CR of their operator.
type staging struct {
	record.Sink
	mu sync.Mutex
	of map[string]*pods // by the resource of the CR
}

func (s *staging) add(p *pods) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[p.e.operator.Resource.GroupResource().String()] = p
}

// Record passes everything on, and then lets the pods of an operator know what its CR says: the stage of this project's operator is in its condition alone.
func (s *staging) Record(at time.Time, source string, payload any) {
	s.Sink.Record(at, source, payload)
	o, is := payload.(*history.Object)
	if !is {
		return
	}
	s.mu.Lock()
	p := s.of[o.Resource]
	s.mu.Unlock()
	if p == nil {
		return
	}
	p.inspectEncrypted(o)
	if p.own {
		p.decisions.stageOf(o)
	}
}

// inspectEncrypted takes an inventory when Encrypted becomes True. One that cannot be taken is missing evidence and no failure.
func (p *pods) inspectEncrypted(o *history.Object) {
	is := slices.ContainsFunc(o.Conditions, func(c *history.Condition) bool {
		return c.Type == contract.ConditionEncrypted && c.Status == string(metav1.ConditionTrue)
	})
	p.decisions.mu.Lock()
	begins := is && !p.decisions.encrypted
	p.decisions.encrypted = is
	p.decisions.mu.Unlock()
	if begins && p.ctx.Err() == nil {
		p.work.Go(func() { _ = p.e.data.takeInventory(p.ctx) })
	}
}

// stageOf notes the stage that an operator's CR names.
func (p *decisions) stageOf(o *history.Object) {
	var stage history.Condition
	for _, c := range o.Conditions {
		if c.Type == core.ConditionProgressing && c.Status == string(metav1.ConditionTrue) {
			stage = history.Condition{Reason: c.Reason, Message: contract.SafeText(c.Message, contract.MaxDetailChars)}
		}
	}
	p.mu.Lock()
	before, changed := p.last, p.stage != stage
	p.stage = stage
	p.mu.Unlock()
	if changed && before != nil {
		d := *before
		p.observed(&d)
	}
}

func (p *pods) Migrates(resource schema.GroupVersionResource) bool {
	for _, e := range p.e.apiServers {
		if e != p.e && e.Encrypted.Resource == resource {
			return false
		}
	}
	return p.e.Name == "" || p.e.Encrypted.Resource == resource
}

// Migrate implements operand.Pods. That of an operator under test takes as long as in OpenShift.
func (p *pods) Migrate(ctx context.Context, resource schema.GroupVersionResource) error {
	ctx, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	at := inHaste()
	if !p.own {
		at = asInOpenShift()
	}
	return migrator{p.e}.rewriteAll(ctx, resource, at)
}

func (p *pods) Migrated(ctx context.Context) error {
	all, err := p.e.data.inventory(ctx)
	if err != nil {
		return fmt.Errorf("look at what lies in etcd: %w", err)
	}
	p.e.record(&history.Encryption{State: history.EncryptionMigrated, Providers: p.newest().providers})
	p.e.record(all)
	return nil
}
