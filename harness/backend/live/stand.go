package live

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Wardle is the API group of k8s.io/sample-apiserver, Flunders its resource as encryption configurations name it.
const (
	Wardle   = "wardle.example.com"
	Flunders = "flunders." + Wardle
)

// Stand is how sample-apiserver stands for an API server beside kube-apiserver. All its instances serve the same group, in two versions,
// and one APIService leads to one Service: so each API server has a version, and its own part of etcd.
type Stand struct {
	// APIServer is whom it stands for (scenario.APIServers).
	APIServer string
	// Version of the group that leads to it.
	Version string
	// Namespace and Service that its instances are in and behind.
	Namespace, Service string

	field []string // of an object, with the data
}

// StandOf is that for an API server.
func StandOf(apiServer string) (Stand, error) {
	switch apiServer {
	case history.OpenShiftAPIServer:
		return Stand{apiServer, "v1alpha1", "openshift-apiserver", "api", []string{"spec", "reference"}}, nil
	case history.OAuthAPIServer:
		return Stand{apiServer, "v1beta1", "openshift-oauth-apiserver", "api", []string{"spec", "flunderReference"}}, nil
	}
	return Stand{}, fmt.Errorf("API server %q: expected %s or %s", apiServer, history.OpenShiftAPIServer, history.OAuthAPIServer)
}

// Prefix begins all of its keys in etcd.
func (s Stand) Prefix() string { return "/" + s.APIServer }

// DNSName is the name by which kube-apiservers reach it, and which they expect in its certificate.
func (s Stand) DNSName() string { return s.Service + "." + s.Namespace + ".svc" }

// User is that of its service account.
func (s Stand) User() string { return "system:serviceaccount:" + s.Namespace + ":" + s.APIServer }

// Encrypted are the objects that it encrypts.
func (s Stand) Encrypted() Encrypted {
	return Encrypted{Resource: schema.GroupVersionResource{Group: Wardle, Version: s.Version, Resource: "flunders"}, Kind: "Flunder",
		Registry: s.Prefix() + "/" + Wardle + "/flunders/", Field: s.field, Spec: map[string]any{"referenceType": "Flunder"}}
}

// LacksFurther is what nobody can do in a topology with further API servers; nothing in one without.
func LacksFurther(s *scenario.Scenario) []string {
	var lacks []string
	if len(s.Topology.Further()) == 0 {
		return nil
	}
	if s.Topology.Start == scenario.StartStopped {
		lacks = append(lacks, "start: stopped with further API servers: they end where no kube-apiserver answers them, and nobody starts them again")
	}
	if s.Topology.Aggregators > 1 {
		lacks = append(lacks, "several aggregators with further API servers: one for each is run")
	}
	if slices.ContainsFunc(s.Actions(), func(a scenario.Action) bool { return a.Verb == scenario.VerbNode }) {
		lacks = append(lacks, "node with further API servers: their pods stay where they are")
	}
	return lacks
}
