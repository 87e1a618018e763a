// Package apiservers names what belongs to an aggregated API server on every backend: the version of the API group that
// its stub serves, a prefix in etcd, a Service, and keys in the shared remote KMS. It is pure.
package apiservers

import (
	"fmt"

	"github.com/kmsharness/kmsharness/harness/history"
)

// Wardle is the API group of k8s.io/sample-apiserver, Plural its resource.
const (
	Wardle = "wardle.example.com"
	Plural = "flunders"
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
func (s Stub) Registry() string { return s.Prefix() + "/" + Wardle + "/" + Plural + "/" }

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
