package cluster

import (
	"strings"
	"testing"
)

// What opens something is left out, whatever provider it is of and however it is written.
func TestWithoutSecrets(t *testing.T) {
	text := `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - kms: {apiVersion: v2, name: kms-1, endpoint: unix:///run/kms-1.sock}
  - aescbc: {keys: [{name: old, secret: c2VjcmV0}]} # was c2VjcmV0
  - secretbox:
      keys:
      - name: box
        secret: |
          c2VjcmV0
  - identity: {}
---
kind: InitConfiguration
bootstrapTokens: [{token: c2VjcmV0.c2VjcmV0}]
certificateKey: c2VjcmV0
discovery: {tlsBootstrapToken: c2VjcmV0, file: {secret: {name: a-reference}}}
`
	got, err := WithoutSecrets([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(got), "c2VjcmV0") || strings.Count(string(got), leftOut) != 5 {
		t.Errorf("left:\n%s", got)
	}
	for _, want := range []string{"unix:///run/kms-1.sock", "name: old", "name: box", "kind: InitConfiguration", "a-reference"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if out, err := WithoutSecrets([]byte("secret: [c2VjcmV0")); err == nil || len(out) > 0 {
		t.Errorf("text that is not YAML was copied: %s", out)
	}
}
