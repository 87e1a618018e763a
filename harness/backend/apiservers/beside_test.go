package apiservers

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
)

// No two share a version, a part of etcd, a namespace, a user or a component.
func TestStandsAreApart(t *testing.T) {
	seen := map[string]string{Component(""): history.KubeAPIServer}
	for _, name := range []string{history.OpenShiftAPIServer, history.OAuthAPIServer} {
		s, err := StubOf(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range []string{s.Version, s.Prefix(), s.Registry(), s.User(), s.DNSName(), Component(name) + " as a component"} {
			if seen[what] != "" {
				t.Errorf("%s and %s both have %s", seen[what], name, what)
			}
			seen[what] = name
		}
	}
	if _, err := StubOf(history.KubeAPIServer); err == nil || !strings.Contains(err.Error(), "expected openshift-apiserver") {
		t.Errorf("kube-apiserver: %v", err)
	}
}

// No key of the remote KMS is behind the plugins of two API servers.
func TestRemoteKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, of := range []string{"", history.OpenShiftAPIServer, history.OAuthAPIServer} {
		for _, keyID := range []string{"1", "key-1"} {
			key := RemoteKey(of, keyID)
			if seen[key] || OfKey(key) != of {
				t.Errorf("%q, keyID %s: key %q, which is of %q", of, keyID, key, OfKey(key))
			}
			seen[key] = true
		}
	}
}
