package cluster

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Wardle is the API group of k8s.io/sample-apiserver, Flunders its resource as encryption configurations name it.
const (
	Wardle   = "wardle.example.com"
	Flunders = flunders + "." + Wardle
	flunders = "flunders"
)

// Stub is how sample-apiserver stands for an API server beside kube-apiserver. All its instances serve the same group, in two versions,
// and one APIService leads to one Service: so each API server has a version, and its own part of etcd.
type Stub struct {
	// APIServer is whom it stands for (scenario.APIServers).
	APIServer string
	// Version of the group that leads to it.
	Version string
	// Namespace and Service that its instances are in and behind.
	Namespace, Service string
	// Field of an object, with the data.
	Field []string
}

// StubOf is that of an aggregated API server.
func StubOf(apiServer string) (Stub, error) {
	switch apiServer {
	case history.OpenShiftAPIServer:
		return Stub{apiServer, "v1alpha1", "openshift-apiserver", "api", []string{"spec", "reference"}}, nil
	case history.OAuthAPIServer:
		return Stub{apiServer, "v1beta1", "openshift-oauth-apiserver", "api", []string{"spec", "flunderReference"}}, nil
	}
	return Stub{}, fmt.Errorf("API server %q: expected %s or %s", apiServer, history.OpenShiftAPIServer, history.OAuthAPIServer)
}

// Prefix begins all of its keys in etcd.
func (s Stub) Prefix() string { return "/" + s.APIServer }

// Registry begins the keys of the objects that it encrypts; it ends with a slash.
func (s Stub) Registry() string { return s.Prefix() + "/" + Wardle + "/" + flunders + "/" }

// DNSName is the name by which kube-apiservers reach it, and which they expect in its certificate.
func (s Stub) DNSName() string { return s.Service + "." + s.Namespace + ".svc" }

func (s Stub) User() string { return "system:serviceaccount:" + s.Namespace + ":" + s.APIServer }

// Component is an API server, kube-apiserver (empty) as well, as the encryption controllers name it in secrets.
func Component(apiServer string) string {
	switch apiServer {
	case "":
		return "openshift-" + history.KubeAPIServer
	case history.OAuthAPIServer:
		return "openshift-" + apiServer
	}
	return apiServer
}

// RemoteKey is the name, unless somebody gave it another, of the key behind the plugins of a keyID, of an aggregated API server or (empty) of kube-apiserver.
func RemoteKey(apiServer, keyID string) string {
	if apiServer == "" {
		return "key-" + keyID
	}
	return apiServer + ".key-" + keyID
}

// APIServerOfKey is the aggregated API server whose plugins a key is behind; empty: kube-apiserver's.
func APIServerOfKey(key string) string {
	if name, _, ok := strings.Cut(key, "."); ok {
		return name
	}
	return ""
}

// Encrypted are the objects that it encrypts.
func (s Stub) Encrypted() Encrypted {
	return Encrypted{Resource: schema.GroupVersionResource{Group: Wardle, Version: s.Version, Resource: flunders}, Kind: "Flunder",
		Registry: s.Registry(), Field: s.Field, Spec: map[string]any{"referenceType": "Flunder"}}
}

// UnsupportedAggregated names what a scenario does that is impossible beside aggregated API servers; nothing without them.
func UnsupportedAggregated(s *scenario.Scenario) []string {
	var lacks []string
	if len(s.Topology.Aggregated()) == 0 {
		return nil
	}
	if s.Topology.Start == scenario.StartStopped {
		lacks = append(lacks, "start: stopped with aggregated API servers: they end where no kube-apiserver answers them, and nobody starts them again")
	}
	if s.Topology.Aggregators > 1 {
		lacks = append(lacks, "several aggregators with aggregated API servers: one for each is run")
	}
	if slices.ContainsFunc(s.Actions(), func(a scenario.Action) bool { return scenario.VerbOf(a) == "node" }) {
		lacks = append(lacks, "node with aggregated API servers: their pods stay where they are")
	}
	return lacks
}
