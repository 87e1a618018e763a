package controlplane

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// AggregatedSpec is one API server behind the aggregation layer of the kube-apiservers.
type AggregatedSpec struct {
	// Kind is whom it stands for ("openshift-apiserver"), Name that of its node. Both as in ServerSpec.
	Kind, Name string
	// Program is that of k8s.io/sample-apiserver (assets.SampleAPIServer).
	Program string
	// Server is the URL at which it finds a kube-apiserver: it asks that who a client is and what he may do.
	Server string
	// Service is the namespace and name of the Service that it is behind; kube-apiservers expect that name in its certificate.
	ServiceNamespace, ServiceName string
	// EtcdPrefix begins all of its keys; no other API server has the same.
	EtcdPrefix string
	Encryption Encryption
}

// Aggregated is one aggregated API server. Its process ends at once where no kube-apiserver answers it.
type Aggregated struct {
	server
}

// AddAggregated makes an aggregated API server; the caller starts it, after a kube-apiserver. The control plane ends it when it is closed.
func (cp *ControlPlane) AddAggregated(spec AggregatedSpec) (*Aggregated, error) {
	s, err := newAggregated(cp, spec)
	if err != nil {
		return nil, fmt.Errorf("add %s of %s: %w", spec.Kind, spec.Name, err)
	}
	cp.mu.Lock()
	defer cp.mu.Unlock()
	cp.aggregated = append(cp.aggregated, s)
	return s, nil
}

func newAggregated(cp *ControlPlane, spec AggregatedSpec) (s *Aggregated, err error) {
	if err := spec.validate(cp.opts); err != nil {
		return nil, err
	}
	s = &Aggregated{}
	if s.server, err = newServer(cp, spec.Kind+"-"+spec.Name, spec.Name, spec.Encryption, spec.ServiceName+"."+spec.ServiceNamespace+".svc"); err == nil {
		err = s.become(spec)
	}
	return s, err
}

func (s AggregatedSpec) validate(opts Options) error {
	switch {
	case !opts.Aggregation:
		return errors.New("the control plane was made without an aggregation layer")
	case !validName.MatchString(s.Kind) || !validName.MatchString(s.Name):
		return fmt.Errorf("kind %q and name %q: expected letters, digits, '.' and '-', at most 63", s.Kind, s.Name)
	case s.Program == "" || s.Server == "" || s.EtcdPrefix == "":
		return errors.New("program, server or etcd prefix is missing")
	}
	return nil
}

// become gives the server its program and a kubeconfig.
func (s *Aggregated) become(spec AggregatedSpec) error {
	// OpenShift gives its API servers the role cluster-admin.
	user := "system:serviceaccount:" + spec.ServiceNamespace + ":" + spec.Kind
	text, err := s.cp.Kubeconfig(user, []string{adminGroup}, spec.Server)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(s.dir, "kubeconfig")
	s.program, s.args = spec.Program, func() []string {
		return append(s.cp.etcd.clientArgs(s.cp.etcd.Addr()),
			"--etcd-prefix="+spec.EtcdPrefix,
			"--kubeconfig="+kubeconfig,
			"--authentication-kubeconfig="+kubeconfig,
			"--authorization-kubeconfig="+kubeconfig,
			"--enable-priority-and-fairness=false")
	}
	return os.WriteFile(kubeconfig, text, 0o600)
}

// frontProxy is the name by which aggregated API servers know a kube-apiserver that passes requests on.
const frontProxy = "kmsharness-front-proxy"

// aggregation is what kube-apiservers need to pass requests on: an authority of their own, because a client with a
// certificate of it is believed whatever user it names.
type aggregation struct {
	authority string // file
	proxy     keyPair
}

func newAggregation(dir string) (*aggregation, error) {
	a, file, err := authorityIn(dir)
	if err != nil {
		return nil, fmt.Errorf("make the certificates of the aggregation layer: %w", err)
	}
	cert, key, _, err := a.client(frontProxy, nil, 0)
	if err != nil {
		return nil, err
	}
	proxy, err := writeKeyPair(dir, "proxy", cert, key)
	return &aggregation{file, proxy}, err
}

// args are those of a kube-apiserver; of no aggregation there are none.
func (a *aggregation) args() []string {
	if a == nil {
		return nil
	}
	return []string{
		"--requestheader-client-ca-file=" + a.authority,
		"--requestheader-allowed-names=" + frontProxy,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + a.proxy.cert,
		"--proxy-client-key-file=" + a.proxy.key,
	}
}

// APIService is what makes kube-apiservers pass requests for a version of an API group on to an aggregated API server.
type APIService struct {
	Group, Version string
	// Namespace and Name of the Service.
	Namespace, Name string
	// Addr (host:port) is where the Service leads: an address of this machine. Endpoints may not lie there, and a kube-apiserver without
	// a kube-proxy beside it cannot use a cluster IP, so the Service has the type ExternalName.
	Addr string
}

// Manifests are the objects for a Service whose certificate this authority has signed, in an order in which they can be created.
func (authority Authority) Manifests(a APIService) ([]*unstructured.Unstructured, error) {
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
		described("v1", "Namespace", "", a.Namespace, map[string]any{}),
		described("v1", "Service", a.Namespace, a.Name, map[string]any{"type": "ExternalName", "externalName": host}),
		authority.APIService(a, int64(number)),
	}, nil
}

// APIService is the object for a Service whose certificate this authority has signed; Addr is not looked at.
func (authority Authority) APIService(a APIService, port int64) *unstructured.Unstructured {
	return described("apiregistration.k8s.io/v1", "APIService", "", a.Version+"."+a.Group, map[string]any{
		"group": a.Group, "version": a.Version, "service": map[string]any{"name": a.Name, "namespace": a.Namespace, "port": port},
		"caBundle":             base64.StdEncoding.EncodeToString(authority.pem),
		"groupPriorityMinimum": int64(1000), "versionPriority": int64(15),
	})
}

func described(apiVersion, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": spec}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}
