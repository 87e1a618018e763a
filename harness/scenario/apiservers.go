package scenario

import (
	"slices"

	"github.com/kmsharness/kmsharness/harness/history"
)

// APIServers are those that a topology can have, kube-apiserver first: it always has that one.
func APIServers() []string { return tagOf[Topology]("APIServers", "enum") }

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
