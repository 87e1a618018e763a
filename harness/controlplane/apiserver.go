package controlplane

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/kmsharness/kmsharness/altsvc/advertise"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/internal/host"
)

// APIServer is one kube-apiserver. It keeps its port, its link to etcd and its certificate across restarts.
type APIServer struct {
	server
	etcdLink *netfault.Link
	front    *advertise.Front // nil: none
}

func newAPIServer(cp *ControlPlane, spec ServerSpec) (s *APIServer, err error) {
	s = &APIServer{}
	if s.server, err = newServer(cp, "apiserver-"+spec.Name, spec.Name, spec.Encryption); err == nil {
		s.etcdLink, err = netfault.NewLink(host.Host{}, s.name+" to etcd", cp.etcd.Addr())
	}
	s.program, s.args = cp.opts.Binaries.KubeAPIServer, s.flags
	if err == nil && spec.Release != "" {
		err = s.SetRelease(spec.Release)
	}
	s.AuditLog, s.FrontAddr = filepath.Join(cp.opts.LogDir, "audit-"+spec.Name+".jsonl"), s.Addr
	if err == nil && cp.alternatives != nil {
		if s.front, err = cp.alternatives.inFrontOf(s); err == nil {
			s.FrontAddr = s.front.Addr()
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// SetRelease makes it one of another release of Kubernetes from its next start on.
func (s *APIServer) SetRelease(release string) error {
	program, ok := s.opts.Releases[release]
	if !ok {
		return fmt.Errorf("there is no kube-apiserver of Kubernetes %s", release)
	}
	s.program = program
	return nil
}

// SetEtcdLink puts a fault in force on what carries everything between this API server and etcd.
func (s *APIServer) SetEtcdLink(f netfault.Fault) error { return s.etcdLink.Set(f) }

// maxAuditMegabytes keeps the audit log in one file: a rotated one would have to be found by its reader.
const maxAuditMegabytes = "100000"

func (s *APIServer) flags() []string {
	accounts := s.cp.serviceAccountKey()
	return slices.Concat([]string{
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--client-ca-file=" + s.cp.authorityFile,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + accounts,
		"--service-account-signing-key-file=" + accounts,
		"--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=RBAC",
		"--allow-privileged", // pods of operators under test are
		// There is no controller that makes the service accounts that this plugin insists on.
		"--disable-admission-plugins=ServiceAccount",
	}, s.cp.etcd.clientArgs(s.etcdLink.Addr()), s.auditArgs(), s.cp.aggregation.args())
}

// auditArgs write each event before the answer is sent, so that what a client saw is in the log.
func (s *APIServer) auditArgs() []string {
	if len(s.opts.AuditPolicy) == 0 {
		return nil
	}
	return []string{
		"--audit-policy-file=" + s.cp.auditPolicyFile(),
		"--audit-log-path=" + s.AuditLog,
		"--audit-log-mode=blocking",
		"--audit-log-format=json",
		"--audit-log-maxsize=" + maxAuditMegabytes,
	}
}

// close frees what newAPIServer made. The process has ended.
func (s *APIServer) close() (err error) {
	if s.front != nil {
		err = s.front.Close()
	}
	if s.etcdLink != nil {
		err = errors.Join(err, s.etcdLink.Close())
	}
	return err
}
