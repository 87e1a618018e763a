package kind

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
)

// etcdMembers are the etcd members of the nodes, past every API server.
type etcdMembers struct {
	tls      *tls.Config
	nodes    *cluster.Nodes
	machines *machines
	record   func(at time.Time, p history.Process)
}

// loadTLS makes the certificate of a client of etcd, by etcd's authority on a node.
func (e *etcdMembers) loadTLS(ctx context.Context, node container) error {
	authority, err := node.authority(ctx, pkiDir+"etcd/ca")
	if err != nil {
		return fmt.Errorf("authority of etcd: %w", err)
	}
	config, err := authority.AdminConfig("")
	if err != nil {
		return err
	}
	e.tls, err = rest.TLSConfigFor(config)
	return err
}

func (e *etcdMembers) url(node string) string {
	return "https://" + e.machines.address(node) + ":" + portEtcd
}

func (e *etcdMembers) transport() *http.Transport {
	return &http.Transport{TLSClientConfig: e.tls, DisableKeepAlives: true}
}

// through does something through the member of any node.
func (e *etcdMembers) through(do func(node string) error) error {
	var errs []error
	for _, name := range e.nodes.Names() {
		err := do(name)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// RangeEtcd implements cluster.Storage.
func (e *etcdMembers) RangeEtcd(ctx context.Context, r cluster.Range) (found []cluster.KeyValue, more bool, err error) {
	err = e.through(func(node string) (err error) {
		found, more, err = cluster.RangeEtcdGateway(ctx, e.transport(), e.url(node), r)
		return err
	})
	return found, more, err
}

// Snapshot implements cluster.Storage.
func (e *etcdMembers) Snapshot(ctx context.Context, from, end string) (func(context.Context) error, error) {
	return cluster.SnapshotEtcdGateway(ctx, e, from, end, func(ctx context.Context, path string, question any) error {
		return e.through(func(node string) error { return e.ask(ctx, node, path, question, nil) })
	})
}

// remove takes the member of a node out of the cluster, through another node's. One that is not there is no error.
func (e *etcdMembers) remove(ctx context.Context, name string) error {
	err := e.through(func(node string) error {
		type member struct { // as etcd's JSON gateway shows it: 64-bit numbers are texts
			ID   string `json:"ID"`
			Name string `json:"name"`
		}
		var list struct {
			Members []member `json:"members"`
		}
		if err := e.ask(ctx, node, "/v3/cluster/member/list", struct{}{}, &list); err != nil {
			return err
		}
		for _, m := range list.Members {
			if m.Name == name {
				return e.ask(ctx, node, "/v3/cluster/member/remove", member{ID: m.ID}, nil)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove the etcd member of %s: %w", name, err)
	}
	return nil
}

// ask asks the member of a node through its JSON gateway.
func (e *etcdMembers) ask(ctx context.Context, node, path string, question, answer any) error {
	return cluster.AskEtcdGateway(ctx, e.transport(), e.url(node)+path, question, answer)
}

// Etcd implements cluster.Storage.
func (e *etcdMembers) Etcd(node string) ([]cluster.Target, error) {
	var all []cluster.Target
	for _, name := range e.nodes.Names() {
		if node == "" || node == "all" || node == name {
			identity := history.Process{Role: history.RoleEtcd, Node: name}
			all = append(all, cluster.Target{Unit: e.member(identity), Identity: identity})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no node %q", node)
	}
	return all, nil
}

var errEtcdOnlyPauses = errors.New("etcd in a static pod can be paused and resumed here: the kubelet starts it again as soon as it ends")

// etcdMember is the member of a node as a unit.
type etcdMember struct{ cluster.Phases }

// member can stand still; one that ends is the kubelet's to start again, whenever that likes.
func (e *etcdMembers) member(identity history.Process) cluster.Unit {
	container := e.machines.container(identity.Node)
	return etcdMember{func(ctx context.Context, _ cluster.Phase, state string) error {
		signal := map[string]string{history.ProcessPaused: "-STOP", history.ProcessResumed: "-CONT"}[state]
		if signal == "" {
			return errEtcdOnlyPauses
		}
		if _, err := container.exec(ctx, "pkill", signal, "-x", "etcd"); err != nil {
			return fmt.Errorf("etcd of %s: %w", identity.Node, err)
		}
		p := identity
		p.State = state
		e.record(time.Now(), p)
		return nil
	}}
}

// Status implements cluster.Unit.
func (etcdMember) Status() cluster.Status { return cluster.Status{Phase: cluster.Running} }
