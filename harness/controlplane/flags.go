package controlplane

import (
	"slices"

	"github.com/kmsharness/kmsharness/harness/assets"
)

// maxAuditMegabytes keeps the audit log in one file: a rotated one would have to be found by its reader.
const maxAuditMegabytes = "100000"

func (s *APIServer) args() []string {
	pki := s.cp.pki
	args := []string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + s.port.String(),
		"--permit-port-sharing=true", // see port
		"--endpoint-reconciler-type=none",
		"--etcd-servers=http://" + s.etcdLink.Addr(),
		"--cert-dir=" + s.dir,
		"--tls-cert-file=" + s.serving.cert,
		"--tls-private-key-file=" + s.serving.key,
		"--client-ca-file=" + pki.caFile(),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + pki.serviceAccountFile(),
		"--service-account-signing-key-file=" + pki.serviceAccountFile(),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=RBAC",
		// There is no controller that makes the service accounts that this plugin insists on.
		"--disable-admission-plugins=ServiceAccount",
		"--encryption-provider-config=" + s.EncryptionFile(),
		"--encryption-provider-config-automatic-reload=true",
		"--profiling=false",
	}
	return slices.Concat(args, s.auditArgs(), s.cp.aggregation.args(), s.opts.APIServerArgs, s.spec.Args)
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

func (s *APIServer) env() []string {
	if s.opts.EncryptionPoll == 0 {
		return nil
	}
	return []string{assets.EnvEncryptionPoll + "=" + s.opts.EncryptionPoll.String()}
}
