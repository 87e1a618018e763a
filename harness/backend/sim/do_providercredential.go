package sim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/exchange"
)

// providerCredential changes the Secret with which plugins log in at their KMS, as an administrator does.
func (fs *faults) providerCredential(a *scenario.Credential) error {
	switch a.Mode {
	case scenario.CredentialExpire, scenario.CredentialRevoke, scenario.CredentialRenew:
		refused := a.Mode != scenario.CredentialRenew
		for _, plugin := range fs.e.pods.logIns.Refuse(refused) {
			if err := fs.e.w.logIns(plugin, refused, a.Mode == scenario.CredentialRevoke); err != nil {
				return fmt.Errorf("%s the credential of plugins: %w", a.Mode, err)
			}
		}
		fs.e.w.kmsChanged()
		return nil
	case scenario.CredentialChange:
		fs.e.pods.logIns.Change()
	}
	value := operated.CredentialContent(fs.e.pods.logIns.Content())
	err := fs.e.switching.persist(func(n *node) error {
		return fs.e.within(requestTimeout, func(done func(error)) {
			if a.Mode == scenario.CredentialRemove {
				n.kube().manage(exchange.Delete, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: exchange.Credentials, Name: operated.CredentialSecret}}, done)
				return
			}
			n.kube().store(operated.CredentialSecret, value, done)
		})
	})
	if err != nil {
		return fmt.Errorf("%s the credential of plugins: %w", a.Mode, err)
	}
	return nil
}
