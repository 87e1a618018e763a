package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/e2e-framework/klient/k8s"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/agent"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/netfault"
)

const (
	// loopback is the agent's connection to the API server, as the programs of its pod see it.
	loopback = "https://127.0.0.1:" + agent.APIPort
	// auditLog is the agent's log of requests.
	auditLog = agent.AuditLog
)

// server is what a node of a scenario has in the place of an API server: the connection to that of the cluster.
type server struct {
	foreign
	url, log string
}

var _ live.Server = (*server)(nil)

// URL implements live.Server: through the agent, which records requests. The others implement it as well.
func (s *server) URL() string                 { return s.url }
func (s *server) AuditLog() string            { return s.log }
func (s *server) LogFile() string             { return "" }
func (s *server) EncryptionFile() string      { return "" }
func (s *server) Ready(context.Context) error { return nil }

// SetEncryption implements live.Server.
func (s *server) SetEncryption(live.Encryption) (string, error) { return "", errNone }

// RollOut implements live.Server.
func (s *server) RollOut([]byte) (string, error) { return "", errNone }

// putter uploads files to a volume, for live.Place.
func (p *pod) putter(volume string) func(name string, text []byte) error {
	return func(name string, text []byte) error {
		ctx, cancel := context.WithTimeout(context.Background(), live.RequestTimeout)
		defer cancel()
		return p.agent.Put(ctx, volume+"/"+name, text, 0o600)
	}
}

// makeNodes makes nodes that do not exist yet, with plugins.
func (p *controlPlane) makeNodes(ctx context.Context, names, keyIDs []string) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		all.Go(func() error {
			if _, err := p.makeNode(ctx, name, keyIDs, nil); err != nil {
				return fmt.Errorf("node %s: %w", name, err)
			}
			return nil
		})
	}
	return all.Wait()
}

// makeNode makes the pod of a node and starts its plugins. created is called when there is a pod; it may be nil.
func (p *controlPlane) makeNode(ctx context.Context, name string, keyIDs []string, created func(context.Context) error) (*live.Node, error) {
	on, err := p.placeOn(ctx, maxNodes)
	if err != nil {
		return nil, err
	}
	object := p.run.nodePod(name, name, on[indexOf(name)%len(on)], p.images)
	if err := p.access.resources(p.run.name).Create(ctx, object); err != nil {
		return nil, fmt.Errorf("create pod %s: %w", name, err)
	}
	if created != nil {
		if err := created(ctx); err != nil {
			return nil, err
		}
	}
	one, err := p.awaitPod(ctx, name)
	if err != nil {
		return nil, err
	}
	n, err := p.connectNode(name, one)
	if err != nil {
		one.disconnect()
		return nil, err
	}
	for _, k := range keyIDs {
		if _, err := p.AddPlugin(ctx, n, k); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// indexOf spreads nodes over those of the cluster by the number at the end of their name, from 0.
func indexOf(name string) (i int) {
	if _, err := fmt.Sscanf(name, "cp-%d", &i); err != nil || i < 1 {
		return 0
	}
	return i - 1
}

// connectNode makes the node of a pod.
func (p *controlPlane) connectNode(name string, in *pod) (*live.Node, error) {
	api, err := in.port(agent.APIPort)
	if err != nil {
		return nil, err
	}
	metrics, err := in.port(portMetrics)
	if err != nil {
		return nil, err
	}
	admin, err := live.NewClient(p.requests.recorded(p.access.config))
	if err != nil {
		return nil, err
	}
	reporter, err := p.newUnit(in, volumeReporter, unitReporter)
	if err != nil {
		return nil, err
	}
	made := &nodePods{pod: in}
	for i := range maxPlugins {
		u, err := p.newUnit(in, volumePlugins, unitPlugin(i+1))
		if err != nil {
			return nil, err
		}
		made.plugins = append(made.plugins, &slot{unit: u})
	}
	n := &live.Node{Name: name, Admin: admin, Server: &server{url: "https://" + api, log: in.file(auditLog)}, ReporterPlace: live.Place{
		Server: loopback, Dir: in.file(volumeReporter), SeenDir: inPod(volumeReporter, ""), Put: in.putter(volumeReporter), SocketDir: contract.SocketDir,
		MetricsAddress: "127.0.0.1:" + portMetrics, MetricsURL: "http://" + metrics + "/metrics", Unit: reporter.place,
	}}
	p.mu.Lock()
	p.names[name] = made
	p.mu.Unlock()
	p.nodes.Add(n)
	return n, nil
}

// resetNode ends faults of a node, and makes its plugins those of keyIDs.
func (p *controlPlane) resetNode(ctx context.Context, n *live.Node, keyIDs []string) error {
	p.mu.Lock()
	one := p.names[n.Name]
	p.mu.Unlock()
	if one.faulty {
		if err := one.agent.SetLink(ctx, netfault.Fault{}); err != nil {
			return err
		}
		one.faulty = false
	}
	for _, g := range n.Plugins() {
		if !slices.Contains(keyIDs, g.KeyID) {
			if err := g.Stop(ctx); err != nil {
				return err
			}
			n.RemovePlugin(g.KeyID)
		}
	}
	for _, k := range keyIDs {
		g, err := p.AddPlugin(ctx, n, k)
		if err != nil {
			return err
		}
		if err := g.Clear(ctx); err != nil {
			return err
		}
	}
	return nil
}

// AddNode implements live.ControlPlane.
func (p *controlPlane) AddNode(ctx context.Context, name string, configured live.Encryption, joined func(context.Context) error) (*live.Node, error) {
	if err := p.allow(ctx, append(p.nodes.Names(), name)); err != nil {
		return nil, err
	}
	return p.makeNode(ctx, name, configured.PluginIDs(), joined)
}

// RemoveNode implements live.ControlPlane.
func (p *controlPlane) RemoveNode(ctx context.Context, n *live.Node) error {
	p.nodes.Remove(n.Name)
	defer n.Close()
	ended := n.EndPlugins(ctx)
	if r := n.Reporter(); r != nil {
		ended = errors.Join(ended, r.Stop(ctx))
	}
	p.mu.Lock()
	one := p.names[n.Name]
	p.mu.Unlock()
	if err := errors.Join(ended, one.sync(ctx), p.journals.Poll()); err != nil {
		return err
	}
	one.disconnect()
	p.mu.Lock()
	delete(p.names, n.Name)
	p.mu.Unlock()
	object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: one.name, Namespace: p.run.name}}
	err := p.access.resources(p.run.name).Delete(ctx, object, func(o *metav1.DeleteOptions) { o.GracePeriodSeconds = ptr.To[int64](0) })
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s: %w", one.name, err)
	}
	return until(ctx, "wait until pod "+one.name+" is gone", func(ctx context.Context) error {
		err := p.access.resources(p.run.name).Get(ctx, one.name, p.run.name, object)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is still there"), err)
	})
}

// NodeSince implements live.NodeKeeper: the pod stands for the node, and the aggregator reads its labels.
func (p *controlPlane) NodeSince(ctx context.Context, name string) (time.Time, error) {
	var found corev1.Pod
	if err := p.access.resources(p.run.name).Get(ctx, name, p.run.name, &found); err != nil {
		return time.Time{}, fmt.Errorf("pod of node %s: %w", name, err)
	}
	return found.CreationTimestamp.UTC(), nil
}

// RemoveNodeObject implements live.NodeKeeper: the pod is not that of a node any more. What runs in it goes on.
func (p *controlPlane) RemoveNodeObject(ctx context.Context, name string) error {
	object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.run.name}}
	text := fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, labelPart)
	if err := p.access.resources(p.run.name).Patch(ctx, object, k8s.Patch{PatchType: types.MergePatchType, Data: []byte(text)}); err != nil {
		return fmt.Errorf("labels of pod %s: %w", name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.names[name]; n != nil {
		n.gone = true
	}
	return nil
}
