package kind

import (
	"context"
	"errors"
	"fmt"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// fleet is an API server beside kube-apiserver: a sample-apiserver on each node, in a pod of a Deployment with its plugins and its reporter,
// behind a Service that the kube-apiservers pass requests on to.
type fleet struct {
	*plane
	live.Stand
	ports       hostPorts
	nodes       live.Nodes
	plugins     places
	profile     live.Profile
	wholes      live.Wholes
	aggregators []*seat
}

var _ live.Further = (*fleet)(nil)

// makeFleets makes the further API servers of a shape. Nothing of them runs yet.
func (p *plane) makeFleets(apiServers []string) error {
	for i, name := range apiServers {
		s, err := live.StandOf(name)
		if err != nil {
			return err
		}
		p.fleets = append(p.fleets, &fleet{plane: p, Stand: s, ports: portsOf(i), plugins: places{journals: p.journals}})
	}
	return nil
}

// Further implements live.WithFurther.
func (p *plane) Further() []live.Further {
	var all []live.Further
	for _, f := range p.fleets {
		all = append(all, f)
	}
	return all
}

// APIServer implements live.Further.
func (f *fleet) APIServer() string { return f.Stand.APIServer }

// Further implements live.WithFurther: there is nothing beside it but kube-apiserver.
func (f *fleet) Further() []live.Further { return nil }

// Nodes implements live.Plane.
func (f *fleet) Nodes() *live.Nodes { return &f.nodes }

// AddPlugin implements live.Plane.
func (f *fleet) AddPlugin(ctx context.Context, n *live.Node, keyID string) (*live.Plugin, error) {
	return f.plugins.start(ctx, n, keyID)
}

// key is the name of the key behind the plugins of a keyID.
func (f *fleet) key(keyID string) string { return f.kms.Key(f.Stand.APIServer, keyID) }

// AggregatorPlace implements live.Plane.
func (f *fleet) AggregatorPlace(i int) live.Place {
	return f.placeIn(f.aggregators, i, f.Stand.APIServer)
}

var errFleetNodes = errors.New("the pods of further API servers stay where they are")

// AddNode implements live.Plane.
func (f *fleet) AddNode(context.Context, string, live.Encryption, func(context.Context) error) (*live.Node, error) {
	return nil, errFleetNodes
}

// Isolate implements live.Plane.
func (f *fleet) Isolate(context.Context, *live.Node) error { return errFleetNodes }

// RemoveNode implements live.Plane.
func (f *fleet) RemoveNode(context.Context, *live.Node) error { return errFleetNodes }

// start starts the API servers in the pods, which wait for their command, and makes the kube-apiservers pass requests on. Those run.
func (f *fleet) start(ctx context.Context) error {
	nodes := f.nodes.List()
	err := eachOf(ctx, f.nodes.Names(), func(ctx context.Context, i int) error {
		s := serverOf(nodes[i])
		if err := s.Start(ctx); err != nil {
			return err
		}
		return s.Ready(ctx)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", f.Stand.APIServer, err)
	}
	service := controlplane.APIService{Group: live.Wardle, Version: f.Version, Namespace: f.Namespace, Name: f.Service}
	return f.apply(ctx, f.authority.APIService(service, servicePort))
}

// reset is for the next scenario; what it proves is live.ResetFurther's.
func (f *fleet) reset(ctx context.Context, s *scenario.Scenario) error {
	nodes, keyIDs := f.nodes.List(), live.KeyIDs(s)
	err := eachOf(ctx, f.nodes.Names(), func(ctx context.Context, i int) error {
		if err := f.plugins.reset(ctx, nodes[i], keyIDs); err != nil {
			return err
		}
		return serverOf(nodes[i]).reset(ctx, keyIDs)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", f.Stand.APIServer, err)
	}
	if err := f.profile.Become(ctx, s.Topology.Profile, &f.nodes); err != nil {
		return err
	}
	if err := f.install(ctx, scenario.OperatorOf(f.Stand.APIServer)); err != nil {
		return err
	}
	return live.ResetFurther(ctx, f.plane, f)
}
