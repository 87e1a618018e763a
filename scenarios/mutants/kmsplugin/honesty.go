package kmsplugin

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance/plugin"
)

func honestyMutants() []Mutant {
	var all []Mutant
	for _, mode := range []string{plugin.ModeFail, plugin.ModeHang, plugin.ModeRefuse, plugin.ModeLoseKey} {
		id := "KMS2-HONESTY-" + strings.ToUpper(mode) + "-"
		all = append(all,
			Mutant{Name: "ok-while-kms-" + mode, Mistake: "healthz is ok while the KMS is in the mode " + mode + ".", Caught: id + "VISIBLE",
				Change: statusIn(mode, func(_ context.Context, resp *kmsapi.StatusResponse) { resp.Healthz = "ok" })},
			Mutant{Name: "status-hangs-while-kms-" + mode, Mistake: "Status waits for the KMS while it is in the mode " + mode + ".", Caught: id + "STATUS-IN-TIME",
				Change: statusIn(mode, func(ctx context.Context, _ *kmsapi.StatusResponse) { <-ctx.Done() })},
			Mutant{Name: "key-id-changes-while-kms-" + mode, Mistake: "The key_id is \"unknown\" while the KMS is in the mode " + mode + ".", Caught: id + "KEY-ID",
				Change: statusIn(mode, func(_ context.Context, resp *kmsapi.StatusResponse) { resp.KeyId = "unknown" })},
			Mutant{Name: "late-recovery-from-kms-" + mode, Mistake: "The plugin stays unhealthy for long after the mode " + mode + ".", Caught: id + "RECOVERS", Change: remembers(mode)},
		)
	}
	return append(all,
		Mutant{Name: "encrypts-without-kms", Mistake: "Encrypt uses a key of its own while the KMS fails, and forgets it.", Caught: "KMS2-HONESTY-NO-FALSE-SUCCESS", Change: encryptsWithoutKMS},
		Mutant{Name: "ends-without-kms", Mistake: "An Encrypt while the KMS fails ends the process.", Caught: "KMS2-HONESTY-FAIL-RECOVERS", Change: endsWithoutKMS},
		Mutant{Name: "failure-loses-data", Mistake: "What was encrypted before a failure of the KMS cannot be decrypted after it.", Caught: "KMS2-HONESTY-DATA-SURVIVES", Change: forgetsAtAFailure},
		Mutant{Name: "status-waits-for-slow-kms", Mistake: "Status makes a request to the KMS and waits for it.", Caught: "KMS2-HONESTY-SLOW-STATUS-IN-TIME", Change: asksTheKMS},
		Mutant{Name: "late-recovery-from-slow-kms", Mistake: "The plugin stays unhealthy for long after the KMS was slow.", Caught: "KMS2-HONESTY-SLOW-RECOVERS", Change: remembers(plugin.ModeSlow)},
	)
}

// statusIn changes the answers of Status while the KMS is in a mode.
func statusIn(mode string, change func(context.Context, *kmsapi.StatusResponse)) func(*Reference) {
	return func(r *Reference) {
		r.Status.after(func(ctx context.Context, _ *kmsapi.StatusRequest, resp *kmsapi.StatusResponse) {
			if r.KMS.Mode() == mode {
				change(ctx, resp)
			}
		})
	}
}

// lateBy is longer than Timing grants for a recovery.
const lateBy = 6 * time.Second

func remembers(mode string) func(*Reference) {
	return func(r *Reference) {
		var mu sync.Mutex
		var seen time.Time
		look := func() (late bool) {
			mu.Lock()
			defer mu.Unlock()
			if r.KMS.Mode() == mode {
				seen = time.Now()
			}
			return !seen.IsZero() && time.Since(seen) < lateBy
		}
		onStatus(func(_ int, resp *kmsapi.StatusResponse) {
			if look() {
				resp.Healthz = "the connection to the KMS is in back-off"
			}
		})(r)
		beforeEncrypt(func(*kmsapi.EncryptRequest) { look() })(r)
	}
}

func encryptsWithoutKMS(r *Reference) {
	r.Encrypt.around(func(ctx context.Context, q *kmsapi.EncryptRequest, next encryptMethod) (*kmsapi.EncryptResponse, error) {
		resp, err := next(ctx, q)
		if err == nil || r.KMS.Mode() != plugin.ModeFail {
			return resp, err
		}
		keys, err := r.KMS.Keys()
		if err != nil {
			return nil, err
		}
		return &kmsapi.EncryptResponse{
			Ciphertext: seal(random(keyBytes), q.Plaintext, nil), KeyId: KeyID(newest(keys)), Annotations: map[string][]byte{annotation: []byte("1")},
		}, nil
	})
}

func endsWithoutKMS(r *Reference) {
	beforeEncrypt(func(*kmsapi.EncryptRequest) {
		if r.KMS.Mode() == plugin.ModeFail {
			panic("no session")
		}
	})(r)
}

// forgetsAtAFailure seals with the number of failures so far, which is kept beside the keys, and opens no other.
func forgetsAtAFailure(r *Reference) {
	file := filepath.Join(r.KMS.dir, "failures")
	var mu sync.Mutex
	failing := false
	failures := func() []byte {
		mu.Lock()
		defer mu.Unlock()
		text, _ := os.ReadFile(file) // absent: none
		if now := r.KMS.Mode() == plugin.ModeFail; now != failing {
			if failing = now; now {
				text = append(text, '1')
				_ = os.WriteFile(file, text, 0o600)
			}
		}
		return text
	}
	r.AAD = failures
	onStatus(func(int, *kmsapi.StatusResponse) { failures() })(r)
}

func asksTheKMS(r *Reference) {
	r.Status.before(func(ctx context.Context, _ *kmsapi.StatusRequest) error {
		if r.KMS.Mode() != plugin.ModeSlow {
			return nil
		}
		return r.KMS.Use(ctx)
	})
}
