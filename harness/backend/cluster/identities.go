package cluster

import (
	"slices"

	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/harness/controlplane"
)

// identities are the credentials of a run: those of the user for the harness, and those of an authority of the run's own for the agents and
// the programs under test. The agents check the latter and impersonate; the cluster does not know them.
type identities struct {
	controlplane.Authority
	access *access
}

// administrators reports whether groups are those of the harness, which has the user's kubeconfig.
func administrators(groups []string) bool { return slices.Contains(groups, "system:masters") }

// Kubeconfig implements live.ControlPlane.
func (i identities) Kubeconfig(user string, groups []string, server string) ([]byte, error) {
	if administrators(groups) {
		return i.access.text, nil
	}
	return i.Authority.Kubeconfig(user, groups, server)
}

// RESTConfig implements live.ControlPlane.
func (i identities) RESTConfig(user string, groups []string, server string) (*rest.Config, error) {
	if administrators(groups) {
		return rest.CopyConfig(i.access.config), nil
	}
	return i.Authority.RESTConfig(user, groups, server)
}
