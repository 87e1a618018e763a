package kmsplugin

import (
	"context"
	"crypto/rand"
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
			Mutant{Name: "ok-while-kms-" + mode, Mistake: "healthz is ok while the KMS is in the mode " + mode + ".", Caught: id + "VISIBLE", Change: hides(mode)},
			Mutant{Name: "status-hangs-while-kms-" + mode, Mistake: "Status waits for the KMS while it is in the mode " + mode + ".", Caught: id + "STATUS-IN-TIME", Change: hangsIn(mode)},
			Mutant{Name: "key-id-changes-while-kms-" + mode, Mistake: "The key_id is \"unknown\" while the KMS is in the mode " + mode + ".", Caught: id + "KEY-ID", Change: unknownIn(mode)},
			Mutant{Name: "late-recovery-from-kms-" + mode, Mistake: "The plugin stays unhealthy for long after the mode " + mode + ".", Caught: id + "RECOVERS", Change: remembers(mode)},
		)
	}
	return append(all,
		Mutant{Name: "encrypts-without-kms", Mistake: "Encrypt uses a key of its own while the KMS fails, and forgets it.", Caught: "KMS2-HONESTY-NO-FALSE-SUCCESS", Change: encryptsWithoutKMS},
		Mutant{Name: "ends-without-kms", Mistake: "An Encrypt while the KMS fails ends the process.", Caught: "KMS2-HONESTY-FAIL-RECOVERS", Change: endsWithoutKMS},
		Mutant{Name: "failure-loses-data", Mistake: "What was encrypted before a failure of the KMS cannot be decrypted after it.", Caught: "KMS2-HONESTY-DATA-SURVIVES", Change: forgetsAtAFailure},
		Mutant{Name: "status-waits-for-slow-kms", Mistake: "Status makes a request to the KMS and waits for it.", Caught: "KMS2-HONESTY-SLOW-STATUS-IN-TIME", Change: asksTheKMS},
		Mutant{Name: "late-recovery-from-slow-kms", Mistake: "The plugin stays unhealthy for long after the KMS was slow.", Caught: "KMS2-HONESTY-SLOW-RECOVERS", Change: remembers(ModeSlow)},
	)
}

func hides(mode string) func(*Reference) {
	return func(r *Reference) {
		onStatus(func(_ int, resp *kmsapi.StatusResponse) {
			if r.KMS.Mode() == mode {
				resp.Healthz = "ok"
			}
		})(r)
	}
}

func hangsIn(mode string) func(*Reference) {
	return func(r *Reference) {
		next := r.Status
		r.Status = func(ctx context.Context, q *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
			if r.KMS.Mode() == mode {
				<-ctx.Done()
			}
			return next(ctx, q)
		}
	}
}

func unknownIn(mode string) func(*Reference) {
	return func(r *Reference) {
		onStatus(func(_ int, resp *kmsapi.StatusResponse) {
			if r.KMS.Mode() == mode {
				resp.KeyId = "unknown"
			}
		})(r)
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
		next := r.Encrypt
		r.Encrypt = func(ctx context.Context, q *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
			look()
			return next(ctx, q)
		}
	}
}

func encryptsWithoutKMS(r *Reference) {
	next := r.Encrypt
	r.Encrypt = func(ctx context.Context, q *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
		resp, err := next(ctx, q)
		if err == nil || r.KMS.Mode() != plugin.ModeFail {
			return resp, err
		}
		keys, keysErr := r.KMS.Keys()
		own := make([]byte, keyBytes+nonceBytes)
		if _, randErr := rand.Read(own); randErr != nil || keysErr != nil {
			return nil, err
		}
		nonce := own[keyBytes:]
		return &kmsapi.EncryptResponse{
			Ciphertext: gcm(own[:keyBytes]).Seal(nonce, nonce, q.Plaintext, nil), KeyId: KeyID(keys[len(keys)-1]),
			Annotations: map[string][]byte{annotation: []byte("1")},
		}, nil
	}
}

func endsWithoutKMS(r *Reference) {
	beforeEncrypt(func(*kmsapi.EncryptRequest) error {
		if r.KMS.Mode() == plugin.ModeFail {
			panic("no session")
		}
		return nil
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
	next := r.Status
	r.Status = func(ctx context.Context, q *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
		if r.KMS.Mode() == ModeSlow {
			if err := r.KMS.Use(ctx); err != nil {
				return nil, err
			}
		}
		return next(ctx, q)
	}
}
