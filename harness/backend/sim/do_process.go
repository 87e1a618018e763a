package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// processes carries out start … restart on every selected process at the same time.
func (e *environment) processes(ctx context.Context, a *scenario.Process) error {
	if a.Target.Role == history.RoleNode || a.Target.Role == history.RolePod {
		return e.wholes(ctx, a)
	}
	if a.Unlisted {
		if err := e.addUnlisted(a.Target); err != nil {
			return err
		}
	}
	if overlap := a.Overlap.Value(); overlap > 0 {
		return e.succeed(a.Target, overlap)
	}
	targets, err := e.selectProcesses(a.Target)
	if err == nil && e.pods != nil {
		targets, err = e.pods.startable(a, targets)
	}
	if err != nil {
		return err
	}
	return each(e, targets, startTimeout, func(p *proc, done func(error)) {
		act(a, p, func() {
			if starts(a) && !p.lives() {
				done(fmt.Errorf("%s %s ended while it started", p.id.Role, p.id.Node))
				return
			}
			done(nil)
		})
	})
}

// addUnlisted makes plugins whose sockets no API server and no reporter is given; they do not run yet.
func (e *environment) addUnlisted(s scenario.Selector) error {
	nodes, err := e.selectNodes(s.Node, false)
	for _, n := range nodes {
		n.add(s.KeyID)
	}
	return err
}

// succeed starts another reporter beside each that is selected, and ends the older ones after a time.
func (e *environment) succeed(s scenario.Selector, overlap time.Duration) error {
	nodes, err := e.selectNodes(s.Node, true)
	if err == nil {
		err = reachable(nodes, "")
	}
	if err != nil {
		return err
	}
	var old, successors []*proc
	for _, n := range nodes {
		old = append(old, &n.reporter.proc)
		n.reporter = newReporter(e.w, n)
		successors = append(successors, &n.reporter.proc)
	}
	return cmp.Or(each(e, successors, startTimeout, start), e.w.k.Sleep(overlap), each(e, old, startTimeout, stop))
}

func starts(a *scenario.Process) bool {
	return a.Do == scenario.VerbStart || a.Do == scenario.VerbRestart
}

func act(a *scenario.Process, p *proc, done func()) {
	switch a.Do {
	case scenario.VerbStart:
		p.start(done)
	case scenario.VerbStop:
		p.stop(done)
	case scenario.VerbKill:
		p.end(history.ProcessKilled, "")
		done()
	case scenario.VerbPause:
		p.pause()
		done()
	case scenario.VerbResume:
		p.resume()
		done()
	default:
		if with := a.With; with == scenario.WithKill || with == scenario.WithContainer {
			p.end(history.ProcessKilled, "")
			p.start(done)
			return
		}
		p.stop(func() { p.start(done) })
	}
}

func (e *environment) selectProcesses(s scenario.Selector) ([]*proc, error) {
	switch s.Role {
	case history.RoleEtcd:
		return []*proc{&e.w.etcd.proc}, nil
	case history.RoleLoadBalancer:
		return []*proc{&e.w.balancer.proc}, nil
	case history.RoleRemoteKMS:
		return []*proc{&e.w.kms.proc}, nil
	case history.RoleOperator:
		return e.pods.operators()
	case history.RoleAggregator:
		return e.selectAggregators(s.Instance)
	case history.RoleAPIServer, history.RolePlugin, history.RoleReporter:
		return e.selectOnNodes(s)
	}
	return nil, fmt.Errorf("role %q: expected etcd, apiserver, plugin, reporter, aggregator, remote-kms or load-balancer", s.Role)
}

func (e *environment) selectOnNodes(s scenario.Selector) ([]*proc, error) {
	nodes, err := e.selectNodes(s.Node, true)
	if err == nil {
		err = reachable(nodes, "")
	}
	if err != nil {
		return nil, err
	}
	var all []*proc
	for _, n := range nodes {
		for _, p := range n.parts() {
			if p.id.Role == s.Role && (s.KeyID == "" || s.Role != history.RolePlugin || s.KeyID == p.id.KeyID) {
				all = append(all, p)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no %s with keyID %q on node %q", s.Role, s.KeyID, s.Node)
	}
	return all, nil
}

// selectNodes finds nodes by a selector's word: a name, or "all" or nothing for all. A removed node whose reporter lingers can be
// found by its name only.
func (e *environment) selectNodes(word string, lingering bool) ([]*node, error) {
	if word == "" || word == scenario.NodeAll {
		return e.nodes(), nil
	}
	n := e.w.nodeNamed(word)
	if n == nil || n.removed && !lingering {
		return nil, fmt.Errorf("there is no node %q: there are %v", word, e.Nodes())
	}
	return []*node{n}, nil
}

func (e *environment) selectAggregators(instance string) ([]*proc, error) {
	leader := e.leader()
	if leader == 0 && (instance == "leader" || instance == "standby") {
		return nil, errors.New("no aggregator holds the lease")
	}
	var all []*proc
	for _, a := range e.w.aggregators {
		i := a.id.Instance
		if instance == "" || instance == "leader" && i == leader || instance == "standby" && i != leader || instance == strconv.Itoa(i) {
			all = append(all, &a.proc)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no aggregator %q: there are %d", instance, len(e.w.aggregators))
	}
	return all, nil
}

// leader is the instance that holds the lease; 0 if none does. One that competes with nobody leads without.
func (e *environment) leader() int {
	if len(e.w.aggregators) == 1 || e.w.seams.NoElection {
		return 1
	}
	v, err := e.w.store.Get(leaseKey())
	if err != nil {
		return 0
	}
	holder, _, _ := unstructured.NestedString(v.Body(), "spec", "holderIdentity")
	for _, a := range e.w.aggregators {
		if a.elector.identity() == holder {
			return a.id.Instance
		}
	}
	return 0
}
