package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"
)

// Encryption is what an API server's EncryptionConfiguration says.
type Encryption struct {
	// Resources that are encrypted; empty means secrets.
	Resources []string
	// Providers are KMS v2 plugins, the write key first.
	Providers []KMSProvider
	// IdentityFirst writes in clear text and keeps the providers for reading, as while encryption is being switched off.
	IdentityFirst bool
}

// KMSProvider is one KMS v2 plugin.
type KMSProvider struct {
	// KeyID is the sequence number of the encryption-key secret; the provider's name is "kms-{KeyID}".
	KeyID string
	// Socket is the path of the plugin's unix socket, absolute.
	Socket string
	// Timeout of a call; 0 means kube-apiserver's default of 3 s.
	Timeout time.Duration
}

func (e Encryption) validate() error {
	seen := map[string]bool{}
	for _, p := range e.Providers {
		switch {
		case p.KeyID == "":
			return fmt.Errorf("encryption: the provider with socket %q has no keyID", p.Socket)
		case seen[p.KeyID]:
			return fmt.Errorf("encryption: keyID %s is there twice", p.KeyID)
		case !filepath.IsAbs(p.Socket):
			return fmt.Errorf("encryption: keyID %s: the socket %q is not an absolute path", p.KeyID, p.Socket)
		case p.Timeout < 0:
			return fmt.Errorf("encryption: keyID %s: the timeout is %v, expected 0 or more", p.KeyID, p.Timeout)
		}
		seen[p.KeyID] = true
	}
	return nil
}

// object is a YAML mapping.
type object = map[string]any

// YAML is the EncryptionConfiguration (apiserver.config.k8s.io/v1).
func (e Encryption) YAML() ([]byte, error) {
	resources := e.Resources
	if len(resources) == 0 {
		resources = []string{"secrets"}
	}
	return yaml.Marshal(object{
		"apiVersion": "apiserver.config.k8s.io/v1",
		"kind":       "EncryptionConfiguration",
		"resources":  []object{{"resources": resources, "providers": e.providers()}},
	})
}

func (e Encryption) providers() []object {
	identity := object{"identity": object{}}
	var all []object
	if e.IdentityFirst {
		all = append(all, identity)
	}
	for _, p := range e.Providers {
		kms := object{"apiVersion": "v2", "name": "kms-" + p.KeyID, "endpoint": "unix://" + p.Socket}
		if p.Timeout != 0 {
			kms["timeout"] = p.Timeout.String()
		}
		all = append(all, object{"kms": kms})
	}
	if !e.IdentityFirst {
		all = append(all, identity)
	}
	return all
}

// writeAtomically puts a file in place in one step, so that a reader sees the old or the new one.
func writeAtomically(path string, content []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone already when all went well
	if _, err := tmp.Write(content); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
