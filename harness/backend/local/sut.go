package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
)

// prepareReporters makes a place for the reporter of every node; it starts none.
func (e *Environment) prepareReporters(ctx context.Context) error {
	for _, n := range e.plane.nodeList() {
		if err := e.prepareReporter(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// prepareReporter gives the node's reporter its identity and its way to the API server: its own node's, by a link of
// its own (connectivity loopback).
func (e *Environment) prepareReporter(ctx context.Context, n *node) error {
	kubeconfig, err := e.kubeconfig("reporter-"+n.name, contract.ReporterIdentity(n.name), []string{contract.ReporterGroup}, n.link.Addr())
	if err != nil {
		return err
	}
	r := e.plane.newChild(&child{
		identity: history.Process{Role: history.RoleReporter, Node: n.name},
		spec:     func(ctx context.Context) (process.Spec, error) { return e.reporterSpec(ctx, n, kubeconfig) },
	})
	n.mu.Lock()
	n.reporter = r
	n.mu.Unlock()
	return nil
}

// reporterSpec is made at every start: the sockets change with the encryption configuration.
func (e *Environment) reporterSpec(ctx context.Context, n *node, kubeconfig string) (process.Spec, error) {
	e.mu.Lock()
	keyIDs := append([]string(nil), e.keyIDs...)
	e.mu.Unlock()
	values := e.commonValues(kubeconfig)
	values["node"], values["metricsAddress"] = n.name, n.metrics
	values["sockets"] = strings.Join(e.plane.sockets(n.name, keyIDs), ",")
	mount := ""
	if e.backend.opts.ReporterMountSockets {
		mount = e.plane.nodeDir(n.name)
		values["sockets"] = strings.Join(standardSockets(keyIDs), ",")
	}
	spec, err := e.command(ctx, e.backend.opts.reporterCommand(), values, "reporter-"+n.name)
	if err != nil {
		return process.Spec{}, fmt.Errorf("reporter of %s: %w", n.name, err)
	}
	return mounted(spec, mount), nil
}

// standardSockets are the endpoints as a reporter sees them in its own mount namespace.
func standardSockets(keyIDs []string) []string {
	all := make([]string, len(keyIDs))
	for i, k := range keyIDs {
		all[i] = contract.SocketPath(contract.SocketDir, k)
	}
	return all
}

// prepareAggregators makes a place for every replica. They go through the load balancer, by a link of their own.
func (e *Environment) prepareAggregators(_ context.Context) error {
	kubeconfig, err := e.kubeconfig("aggregator", contract.AggregatorIdentity, nil, e.plane.front[fromAggregator].Addr())
	if err != nil {
		return err
	}
	count := max(e.scenario.Topology.Aggregators, 1)
	for i := range count {
		instance := i + 1
		e.aggregators = append(e.aggregators, e.plane.newChild(&child{
			identity: history.Process{Role: history.RoleAggregator, Instance: instance},
			spec: func(ctx context.Context) (process.Spec, error) {
				values := e.commonValues(kubeconfig)
				values["instance"] = leaseIdentity(instance)
				values["leaderElect"] = strconv.FormatBool(count > 1)
				return e.command(ctx, e.backend.opts.aggregatorCommand(), values, fmt.Sprintf("aggregator-%d", instance))
			},
		}))
	}
	return nil
}

// leaseIdentity is how a replica signs its lease, so that the leader can be found.
func leaseIdentity(instance int) string { return fmt.Sprintf("aggregator-%d", instance) }

func (e *Environment) commonValues(kubeconfig string) map[string]string {
	t := timing()
	form := e.scenario.Contract
	return map[string]string{
		"kubeconfig": kubeconfig, "interval": t.Interval.String(), "jitter": t.Jitter.String(),
		"readTimeout": t.ProbeTimeout.String(), "writeTimeout": t.WriteTimeout.String(),
		"metricsAddress": "127.0.0.1:0", // of an aggregator, which nobody asks; reporters have their node's
		"contract":       orDefault(form, "conditions"), "operator": operatorFlag(e.scenario.Operator),
	}
}

func (e *Environment) command(ctx context.Context, text string, values map[string]string, log string) (process.Spec, error) {
	t, err := parseTemplate(text)
	if err != nil {
		return process.Spec{}, err
	}
	program, args := t.fill(values)
	path, err := e.plane.programs.find(ctx, program)
	if err != nil {
		return process.Spec{}, err
	}
	return process.Spec{Path: path, Args: args, LogFile: filepath.Join(e.logDir, log+".log")}, nil
}

// kubeconfig writes a kubeconfig for an identity and gives its path.
func (e *Environment) kubeconfig(name, user string, groups []string, addr string) (string, error) {
	text, err := e.plane.cp.Kubeconfig(user, groups, "https://"+addr)
	if err != nil {
		return "", err
	}
	path := filepath.Join(e.plane.dir, name+".kubeconfig")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("kubeconfig of %s: %w", user, err)
	}
	return path, nil
}
