package kind

import (
	"context"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// further is a further API server on a node.
type further struct{ *server }

var _ live.Server = further{}

// AuditLog implements live.Server: the requests that matter are in those of the kube-apiservers.
func (further) AuditLog() string { return "" }

// serverOf is the API server of a node of this backend.
func serverOf(n *live.Node) *server {
	if s, ok := n.Server.(further); ok {
		return s.server
	}
	return n.Server.(*server)
}

// Files of a further API server in the folder of its pod.
const (
	furtherKubeconfig = "apiserver.kubeconfig"
	furtherCert       = "apiserver.crt"
	furtherKey        = "apiserver.key"
)

// words of the command of a further API server on a node. It uses the etcd member of its node, as the kube-apiserver does.
func (f *fleet) words(at podFiles, address string) []string {
	kubeconfig := at.in(furtherKubeconfig)
	return []string{
		"/" + sampleProgram,
		"--secure-port=" + portFurther,
		"--etcd-servers=https://" + address + ":" + portEtcd,
		"--etcd-prefix=" + f.Prefix(),
		"--etcd-cafile=" + etcdAuthority,
		"--etcd-certfile=" + etcdClientCert,
		"--etcd-keyfile=" + etcdClientKey,
		"--cert-dir=" + at.seen,
		"--tls-cert-file=" + at.in(furtherCert),
		"--tls-private-key-file=" + at.in(furtherKey),
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--encryption-provider-config=" + at.in(encryptionFile),
		"--encryption-provider-config-automatic-reload=true",
		"--enable-priority-and-fairness=false",
		"--profiling=false",
		"--vmodule=envelope=6",
	}
}

// newServer is the API server of a pod, which waits for its command.
func (f *fleet) newServer(node string, at podFiles) (further, error) {
	unit, err := newHeld(at.dir, unitAPIServer)
	if err != nil {
		return further{}, err
	}
	unit.command = func(context.Context) ([]string, error) { return f.words(at, f.address(node)), nil }
	url := "https://" + f.address(node) + ":" + f.ports.apiServer
	client, err := f.adminHTTP(url)
	return further{&server{held: unit, dir: at.dir, url: url, http: client, resources: []string{live.Flunders}}}, err
}
