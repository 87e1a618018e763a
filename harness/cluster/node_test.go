package cluster

import "testing"

func TestLoadedConfigHash(t *testing.T) {
	const line = `apiserver_encryption_config_controller_last_config_info{apiserver_id_hash="sha256:aa",hash="sha256:bb"} 1`
	if hash, ok := hashOf(line); !ok || hash != "sha256:bb" {
		t.Fatalf("%q, %v", hash, ok)
	}
	if _, ok := hashOf("up 1"); ok {
		t.Fatal("another metric was taken for it")
	}
}
