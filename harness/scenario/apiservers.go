package scenario

import (
	"slices"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/internal/suggest"
)

// APIServers are those that a topology can have, kube-apiserver first: it always has that one.
func APIServers() []string {
	return []string{history.KubeAPIServer, history.OpenShiftAPIServer, history.OAuthAPIServer}
}

// OperatorOf is the operator to whose CR the reporters of an API server write.
func OperatorOf(apiServer string) string {
	switch apiServer {
	case history.OpenShiftAPIServer:
		return "openshiftapiserver"
	case history.OAuthAPIServer:
		return "authentication"
	}
	return Operators()[0]
}

// Aggregated are the API servers beside kube-apiserver, in the order of the file.
func (t Topology) Aggregated() []string {
	return slices.DeleteFunc(slices.Clone(t.APIServers), func(name string) bool { return name == history.KubeAPIServer })
}

// ownRoles are the roles of which every API server has processes of its own.
func ownRoles() []string {
	return []string{history.RoleReporter, history.RolePlugin, history.RoleAPIServer, history.RoleAggregator, history.RoleOperator, history.RolePod}
}

func (v *validation) apiServers(at place) {
	t := v.scenario.Topology
	known := APIServers()
	for i, name := range t.APIServers {
		if v.keyword(at.index(i), "API server", name, known) && slices.Index(t.APIServers, name) < i {
			v.add(at.index(i), "API server %s occurs twice, expected it once", quote(name))
		}
	}
	if !slices.Contains(t.APIServers, history.KubeAPIServer) {
		v.add(at, "no %s among the API servers, expected it: the others depend on it", history.KubeAPIServer)
	}
	if len(t.Aggregated()) > 0 && v.scenario.Operator != Operators()[0] {
		v.add(place{"spec", "operator"}, "operator %s with several API servers, expected none: each reports to the operator of its own", quote(v.scenario.Operator))
	}
}

// selectedAPIServer checks a selector's API server, which may be left out.
func (v *validation) selectedAPIServer(at place, name string) {
	known := v.scenario.Topology.APIServers
	if name != "" && !slices.Contains(known, name) {
		v.add(at, "API server %s is not in the topology, expected %s%s", quote(name), oneOf(known), suggest.DidYouMean(name, known))
	}
}
