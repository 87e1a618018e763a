package live

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/poll"
)

// reporterKubeconfig writes the kubeconfig of a node's reporter, and gives its path as the program sees it. The credential is a file beside it, as
// where a kubelet or a certificate syncer mounts one: it can be replaced while the reporter runs. A reporter that uses the in-cluster configuration has none.
func (sut *systemUnderTest) reporterKubeconfig(ctx context.Context, n *cluster.Node) (string, error) {
	if n.ReporterPlace.InCluster != nil {
		if err := sut.prepareAccount(ctx, n); err != nil || sut.choosesConnectivity() {
			return "", err
		}
		return sut.accountKubeconfig(n)
	}
	if _, err := sut.writeCredential(ctx, n, 0); err != nil {
		return "", err
	}
	at, user := n.ReporterPlace, contract.ReporterIdentity(n.Name)
	text, err := sut.e.controlPlane.Credentials.Kubeconfig(user, reporterGroups(sut.e.opts.Reporter), at.Server)
	if err != nil {
		return "", err
	}
	config, err := clientcmd.Load(text)
	if err != nil {
		return "", fmt.Errorf("kubeconfig of %s: %w", user, err)
	}
	file := filepath.Join(at.SeenDir, credentialFile(n))
	for _, auth := range config.AuthInfos {
		auth.ClientCertificateData, auth.ClientKeyData = nil, nil
		auth.ClientCertificate, auth.ClientKey = file, file
	}
	if text, err = clientcmd.Write(*config); err != nil {
		return "", fmt.Errorf("kubeconfig of %s: %w", user, err)
	}
	return at.Write("reporter-"+n.Name+".kubeconfig", text)
}

// credentialFile has a certificate and its key, so that both are replaced at once.
func credentialFile(n *cluster.Node) string { return "reporter-" + n.Name + ".pem" }

// writeCredential replaces the credential of a node's reporter. Until expires, which is the end of its life, API servers accept it.
func (sut *systemUnderTest) writeCredential(ctx context.Context, n *cluster.Node, life time.Duration) (expires time.Time, err error) {
	if n.ReporterPlace.InCluster != nil {
		return sut.writeToken(ctx, n, life)
	}
	text, expires, err := sut.e.controlPlane.Credentials.Certificate(contract.ReporterIdentity(n.Name), reporterGroups(sut.e.opts.Reporter), life)
	if err != nil {
		return expires, err
	}
	_, err = n.ReporterPlace.Write(credentialFile(n), text)
	return expires, err
}

// credential lets the credential of reporters expire, renews it, or does both in the order of a kubelet.
func (sut *systemUnderTest) credential(ctx context.Context, a *scenario.Credential) error {
	if a.Provider {
		return sut.e.faults.providerCredential(ctx, a)
	}
	nodes, err := sut.e.procs.selectReachable(a.Node, true, "")
	if err != nil {
		return err
	}
	if a.Mode == scenario.CredentialRevoke {
		return sut.legacy.revoke(ctx, nodes)
	}
	if a.Mode == scenario.CredentialRenew {
		for _, n := range nodes {
			if _, err := sut.writeCredential(ctx, n, 0); err != nil {
				return err
			}
			sut.e.record(expired(n, true))
		}
		return nil
	}
	life := backend.CredentialLifetime + time.Second
	if a.Mode == scenario.CredentialRotate {
		life = backend.CredentialOverlap
	}
	var last time.Time
	ends := map[*cluster.Node]time.Time{}
	for _, n := range nodes {
		if ends[n], err = sut.writeCredential(ctx, n, life); err != nil {
			return err
		}
		last = ends[n]
		r := n.Reporter()
		if err := r.Stop(ctx); err != nil {
			return err
		}
		if err := sut.e.procs.start(ctx, r); err != nil {
			return err
		}
		if n.ReporterPlace.InCluster != nil {
			last = last.Add(controlplane.TokenCache)
		}
	}
	if a.Mode == scenario.CredentialRotate {
		for _, n := range nodes {
			if _, err := sut.writeCredential(ctx, n, 0); err != nil {
				return err
			}
		}
		clear(ends) // a reporter that reads the new one is not refused
	}
	if err := poll.Pause(ctx, time.Until(last)); err != nil {
		return err
	}
	for n, at := range ends {
		sut.e.sink.Record(at, "backend", expired(n, false))
	}
	return nil
}

// expired is what API servers answer to the reporter of a node whose credential has expired.
func expired(n *cluster.Node, over bool) *history.Refusal {
	r := &history.Refusal{Role: history.RoleReporter, Node: n.Name, Mode: history.RefuseExpired, Code: history.RefusalCode(history.RefuseExpired), Over: over}
	if n.ReporterPlace.InCluster != nil {
		r.RetryAfter = backend.TokenReload
	}
	return r
}

// writesAnnotation counts the writes of a Secret: one with the same content would otherwise be none to the API server.
const writesAnnotation = "kmsharness.io/writes"

// providerCredential changes the Secret with which plugins log in at their KMS, as an administrator does.
func (fs *faults) providerCredential(ctx context.Context, a *scenario.Credential) error {
	p := fs.e.pods.logIns
	p.mu.Lock()
	switch a.Mode {
	case scenario.CredentialExpire, scenario.CredentialRevoke, scenario.CredentialRenew:
		refused := a.Mode != scenario.CredentialRenew
		plugins := p.all.Refuse(refused)
		p.mu.Unlock()
		for _, plugin := range plugins {
			if err := fs.e.controlPlane.KMS.LogIns(ctx, plugin, refused, a.Mode == scenario.CredentialRevoke); err != nil {
				return fmt.Errorf("%s the credential of plugins: %w", a.Mode, err)
			}
		}
		return nil
	case scenario.CredentialChange:
		p.all.Change()
	}
	p.writes++
	content, writes := p.all.Content(), p.writes
	p.mu.Unlock()
	err := fs.e.persist(ctx, func(ctx context.Context, c *cluster.Client) error {
		if a.Mode == scenario.CredentialRemove {
			return c.Remove(ctx, cluster.SecretObjects(), credentialNamespace, credentialSecret)
		}
		s := credentialObject(content)
		s.SetAnnotations(map[string]string{writesAnnotation: fmt.Sprint(writes)})
		_, err := c.Resource(cluster.SecretObjects()).Namespace(credentialNamespace).Apply(ctx, credentialSecret, s, metav1.ApplyOptions{FieldManager: "kmsharness", Force: true})
		return err
	})
	if err != nil {
		return fmt.Errorf("%s the credential of plugins: %w", a.Mode, err)
	}
	return nil
}
