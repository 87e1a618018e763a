package controlplane

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Encryption is what an API server's EncryptionConfiguration says.
type Encryption struct {
	// Resources that are encrypted; empty means secrets.
	Resources []string
	// Providers: the first writes, all of them read. Without any, clear text is written.
	Providers []Provider
}

// object is a YAML mapping.
type object = map[string]any

// YAML is the EncryptionConfiguration (apiserver.config.k8s.io/v1).
func (e Encryption) YAML() ([]byte, error) {
	resources := e.Resources
	if len(resources) == 0 {
		resources = []string{"secrets"}
	}
	providers := make([]object, 0, len(e.Providers)+1)
	for _, p := range e.Providers {
		providers = append(providers, p.entry())
	}
	if len(providers) == 0 {
		providers = append(providers, Identity().entry())
	}
	return yaml.Marshal(object{
		"apiVersion": "apiserver.config.k8s.io/v1",
		"kind":       "EncryptionConfiguration",
		"resources":  []object{{"resources": resources, "providers": providers}},
	})
}

// Validate demands what kube-apiserver demands, and what keeps the providers apart: a file that it rejects is one that a running
// API server ignores, and one that is started with does not start.
func (e Encryption) Validate() error {
	for _, r := range e.Resources {
		if err := checkResource(r); err != nil {
			return fmt.Errorf("encryption: %w", err)
		}
	}
	seen := map[string]bool{}
	for _, p := range e.Providers {
		if err := p.check(); err != nil {
			return fmt.Errorf("encryption: %w", err)
		}
		if seen[p.Name()] {
			return fmt.Errorf("encryption: provider %s is there twice, expected it once", p.Name())
		}
		seen[p.Name()] = true
	}
	return nil
}

// checkResource keeps to the plain names that the harness encrypts: kube-apiserver knows wildcards besides, and what it never
// encrypts.
func checkResource(r string) error {
	switch {
	case r == "" || r != strings.ToLower(r):
		return fmt.Errorf("resource %q, expected a plural in small letters, such as secrets or routes.route.openshift.io", r)
	case strings.Contains(r, "*"):
		return fmt.Errorf("resource %q, expected no wildcard: it would encrypt what nobody migrates", r)
	case r == "events" || strings.HasSuffix(r, ".events.k8s.io") || strings.HasSuffix(r, ".extensions"):
		return fmt.Errorf("resource %q, which kube-apiserver does not encrypt", r)
	}
	return nil
}
