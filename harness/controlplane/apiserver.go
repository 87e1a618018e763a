package controlplane

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/kmsharness/kmsharness/altsvc/advertise"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/internal/host"
)

// APIServer is one kube-apiserver. It keeps its port, its link to etcd and its certificate across restarts.
type APIServer struct {
	server
	spec     ServerSpec
	etcdLink *netfault.Link
	front    *advertise.Front // nil: none
}

func newAPIServer(cp *ControlPlane, spec ServerSpec) (*APIServer, error) {
	s := &APIServer{server: newServer(cp, "apiserver-"+spec.Name, spec.Name, "API server "+spec.Name), spec: spec}
	s.command = func() (string, []string) { return s.opts.Binaries.KubeAPIServer, s.args() }
	err := s.setUp(spec.Encryption)
	if err == nil {
		s.etcdLink, err = netfault.NewLink(host.Host{}, s.name+" to etcd", cp.etcd.Addr())
	}
	if err == nil && cp.alternatives != nil {
		s.front, err = cp.alternatives.inFrontOf(s)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// EtcdLink carries everything between this API server and etcd.
func (s *APIServer) EtcdLink() *netfault.Link { return s.etcdLink }

// FrontAddr is where clients that are to learn of other API servers connect (127.0.0.1:port). It is Addr unless Options.Alternatives is set.
func (s *APIServer) FrontAddr() string {
	if s.front != nil {
		return s.front.Addr()
	}
	return s.Addr()
}

// AuditLog is the file that receives audit events, one JSON object a line, before each answer is sent.
func (s *APIServer) AuditLog() string {
	return filepath.Join(s.opts.LogDir, "audit-"+s.spec.Name+".jsonl")
}

// maxAuditMegabytes keeps the audit log in one file: a rotated one would have to be found by its reader.
const maxAuditMegabytes = "100000"

func (s *APIServer) args() []string {
	pki := s.cp.pki
	args := append(s.server.args(),
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--client-ca-file="+pki.caFile(),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+pki.serviceAccountFile(),
		"--service-account-signing-key-file="+pki.serviceAccountFile(),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=RBAC",
		"--allow-privileged", // pods of operators under test are
		// There is no controller that makes the service accounts that this plugin insists on.
		"--disable-admission-plugins=ServiceAccount",
	)
	return slices.Concat(args, s.cp.etcd.clientArgs(s.etcdLink.Addr()), s.auditArgs(), s.cp.aggregation.args(), s.opts.APIServerArgs, s.spec.Args)
}

// auditArgs write each event before the answer is sent, so that what a client saw is in the log.
func (s *APIServer) auditArgs() []string {
	if len(s.opts.AuditPolicy) == 0 {
		return nil
	}
	return []string{
		"--audit-policy-file=" + s.cp.auditPolicyFile(),
		"--audit-log-path=" + s.AuditLog(),
		"--audit-log-mode=blocking",
		"--audit-log-format=json",
		"--audit-log-maxsize=" + maxAuditMegabytes,
	}
}

// close frees what newAPIServer made. The process has ended.
func (s *APIServer) close() error {
	err := s.server.close()
	if s.front != nil {
		err = errors.Join(err, s.front.Close())
	}
	if s.etcdLink != nil {
		err = errors.Join(err, s.etcdLink.Close())
	}
	return err
}
