package exchange

import (
	"reflect"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
)

// TestHandshake: a result stands with the hash that it was made for, beside the one that is asked for.
func TestHandshake(t *testing.T) {
	p, err := config.NewPlugin("GCP", "", map[string]string{"keyName": "projects/p/locations/l/keyRings/r/cryptoKeys/k"})
	if err != nil {
		t.Fatal(err)
	}
	w := core.Wanted{Wanted: config.Wanted{Type: config.KMS, KMS: p}}
	result := func(status, hash, kek string) map[string]any {
		return map[string]any{"observedConfigHash": w.Hash(), "result": map[string]any{"status": status, "configHash": hash, "remoteKeyID": kek}}
	}
	at := time.Unix(1, 0)
	for name, c := range map[string]struct {
		wanted core.Wanted
		result core.Preflight
		want   map[string]any
	}{
		"no plugin":      {core.Wanted{Wanted: config.Wanted{Type: config.AESCBC}}, core.Preflight{}, nil},
		"invalid":        {core.Wanted{Invalid: "x"}, core.Preflight{}, nil},
		"asked":          {w, core.Preflight{}, map[string]any{"observedConfigHash": w.Hash()}},
		"under way":      {w, core.Preflight{Hash: w.Hash()}, map[string]any{"observedConfigHash": w.Hash()}},
		"passed":         {w, core.Preflight{Hash: w.Hash(), OK: true, KEK: "kek", At: at}, result("Succeeded", w.Hash(), "kek")},
		"failed":         {w, core.Preflight{Hash: w.Hash(), At: at}, result("Failed", w.Hash(), "unknown")},
		"of another one": {w, core.Preflight{Hash: "abcdefgh", OK: true, KEK: "kek", At: at}, result("Succeeded", "abcdefgh", "kek")},
	} {
		if got := handshake(c.wanted, c.result); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, expected %v", name, got, c.want)
		}
	}
}
