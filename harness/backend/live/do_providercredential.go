package live

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

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
			if err := fs.e.controlPlane.KMS.logIns(ctx, plugin, refused, a.Mode == scenario.CredentialRevoke); err != nil {
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
	err := fs.e.data.persist(ctx, func(ctx context.Context, c *Client) error {
		if a.Mode == scenario.CredentialRemove {
			return c.remove(ctx, secretObjects(), credentialNamespace, credentialSecret)
		}
		s := credentialObject(content)
		s.SetAnnotations(map[string]string{writesAnnotation: fmt.Sprint(writes)})
		_, err := c.Resource(secretObjects()).Namespace(credentialNamespace).Apply(ctx, credentialSecret, s, metav1.ApplyOptions{FieldManager: "kmsharness", Force: true})
		return err
	})
	if err != nil {
		return fmt.Errorf("%s the credential of plugins: %w", a.Mode, err)
	}
	return nil
}
