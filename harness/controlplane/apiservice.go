package controlplane

import (
	"fmt"
	"net"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// APIService is what makes kube-apiservers pass requests for a version of an API group on to an aggregated API server.
type APIService struct {
	Group, Version string
	// Namespace and Name of the Service.
	Namespace, Name string
	// Addr (host:port) is where the Service leads: an address of this machine. Endpoints may not lie there, and a kube-apiserver without
	// a kube-proxy beside it cannot use a cluster IP, so the Service has the type ExternalName.
	Addr string
}

// Manifests are the objects, in an order in which they can be created.
func (cp *ControlPlane) Manifests(a APIService) ([]*unstructured.Unstructured, error) {
	host, port, err := net.SplitHostPort(a.Addr)
	if err != nil {
		return nil, fmt.Errorf("APIService %s.%s: %w", a.Version, a.Group, err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("APIService %s.%s: port of %q: %w", a.Version, a.Group, a.Addr, err)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		host = "localhost" // an external name is a name
	}
	return []*unstructured.Unstructured{
		described("v1", "Namespace", "", a.Namespace, object{}),
		described("v1", "Service", a.Namespace, a.Name, object{"type": "ExternalName", "externalName": host}),
		a.object(int64(number), cp.pki.bundle()),
	}, nil
}

// object is the APIService itself; bundle is the authority that signed the certificate of the Service.
func (a APIService) object(port int64, bundle string) *unstructured.Unstructured {
	return described("apiregistration.k8s.io/v1", "APIService", "", a.Version+"."+a.Group, object{
		"group": a.Group, "version": a.Version, "service": object{"name": a.Name, "namespace": a.Namespace, "port": port}, "caBundle": bundle,
		"groupPriorityMinimum": int64(1000), "versionPriority": int64(15),
	})
}

func described(apiVersion, kind, namespace, name string, spec object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: object{"apiVersion": apiVersion, "kind": kind, "spec": spec}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}
