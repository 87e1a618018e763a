package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/apiservers"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// AggregatedAPIServer is a plane as an API server beside kube-apiserver sees it: its nodes are the same, but have that API server, with plugins and
// reporters of its own; what it shares with the others is the plane's.
type AggregatedAPIServer interface {
	ControlPlane
	// APIServer is its name (scenario.APIServers).
	APIServer() string
	// Encrypted are its objects. A node's Admin client writes them through the aggregation layer, its Direct client past that.
	Encrypted() Encrypted
}

type WithAggregated interface{ AggregatedAPIServers() []AggregatedAPIServer }

func aggregatedOf(p ControlPlane) []AggregatedAPIServer {
	if w, ok := p.(WithAggregated); ok {
		return w.AggregatedAPIServers()
	}
	return nil
}

// scoped says of all that it passes on which API server it is about.
type scoped struct {
	to        record.Sink
	apiServer string
}

// Record implements record.Sink.
func (s scoped) Record(at time.Time, source string, payload any) {
	s.to.Record(at, s.apiServer+"/"+source, history.Of{APIServer: s.apiServer, Payload: payload})
}

// owned says of a process's change whose the process is.
func owned(payload any) any {
	if p, ok := payload.(*history.Process); ok && p.APIServer != "" {
		return history.Of{APIServer: p.APIServer, Payload: p}
	}
	return payload
}

// makeAggregated makes an environment for each further API server. It does what this one does, to what is its own.
func (e *Environment) makeAggregated() error {
	for _, p := range aggregatedOf(e.controlPlane) {
		op, err := operatorNamed(scenario.OperatorOf(p.APIServer()))
		if err != nil {
			return err
		}
		f := newEnvironment(p, e.scenario, e.opts, op, filepath.Join(e.logDir, p.APIServer()))
		f.main, f.apiServer, f.objects, f.sink = e, p.APIServer(), p.Encrypted(), scoped{e.sink, p.APIServer()}
		if f.pods != nil {
			e.stages.add(f.pods)
		}
		if err := os.MkdirAll(f.logDir, 0o755); err != nil {
			return err
		}
		if f.recorder, err = e.recorder.of(f); err != nil {
			return fmt.Errorf("%s: %w", f.apiServer, err)
		}
		e.aggregated = append(e.aggregated, f)
	}
	return nil
}

// all are the environments of all API servers.
func (e *Environment) all() []*Environment {
	if e.main != nil {
		e = e.main
	}
	return append([]*Environment{e}, e.aggregated...)
}

// eachAggregated does something to all of them, one after another.
func (e *Environment) eachAggregated(do func(*Environment) error) error {
	var errs []error
	for _, f := range e.aggregated {
		if err := do(f); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.apiServer, err))
		}
	}
	return errors.Join(errs...)
}

// headings of the further API servers. Their reporters are in Deployments, which have no API server of their own node.
func (e *Environment) headings() []history.AggregatedAPIServer {
	var all []history.AggregatedAPIServer
	for _, f := range e.aggregated {
		way := history.ConnectService
		if f.sut.streams() {
			way = history.ConnectStream
		}
		all = append(all, history.AggregatedAPIServer{
			Name: f.apiServer, Operator: f.operator.resource.Resource, ClusterOperator: f.operator.clusterOperator, Connectivity: way})
	}
	return all
}

func (e *Environment) doOne(ctx context.Context, name string, a scenario.Action) error {
	nodes, err := e.procs.selectNodes(scenario.Selected(a).Node, false)
	if err == nil {
		err = e.procs.reachable(nodes, unavailableStopped)
	}
	if err != nil {
		return err
	}
	for _, f := range e.aggregated {
		if f.apiServer == name {
			return f.Do(ctx, scenario.ForAPIServer(a, ""))
		}
	}
	return fmt.Errorf("there is no %s in the topology", name)
}

// remoteKey is the name of the key behind the plugins of a keyID.
func (e *Environment) remoteKey(keyID string) string {
	return e.controlPlane.KMS().Key(e.apiServer, keyID)
}

// component is the API server as the encryption controllers name it in secrets.
func (e *Environment) component() string { return apiservers.Component(e.apiServer) }

// beginAggregated records what the further API servers were told, and starts their reporters and aggregators.
func (e *Environment) beginAggregated(ctx context.Context) error {
	return e.eachAggregated(func(f *Environment) error {
		if err := f.sut.prepareSystemUnderTest(ctx); err != nil {
			return err
		}
		f.recordExpected()
		f.encrypting.recordConfigured()
		return f.sut.startSystemUnderTest(ctx)
	})
}

// lastRead reads all data a last time, and takes the last census.
func (e *Environment) lastRead(ctx context.Context) error {
	if !e.data.wrote() {
		return nil
	}
	return errors.Join(e.data.verifyData(ctx), e.data.takeInventory(ctx))
}

// pluginsOf is what every API server begins with.
func pluginsOf(s *scenario.Scenario) Encryption {
	configured := Plugins(KeyIDs(s)...)
	configured.Keys = map[encryption.Provider][]byte{}
	return configured
}
