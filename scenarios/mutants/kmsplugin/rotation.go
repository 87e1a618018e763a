package kmsplugin

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"
)

func rotationMutants() []Mutant {
	return []Mutant{
		{Name: "rotation-unnoticed", Mistake: "A rotation is noticed at the next start only.", Caught: "KMS2-ROTATION-NOTICED", Change: keysOfTheStart},
		{Name: "rotation-encrypts-with-the-old-key", Mistake: "Status names the new key, and Encrypt goes on with the one before.", Caught: "KMS2-ROTATION-ENCRYPT-FOLLOWS",
			Change: func(r *Reference) { r.EncryptWith = func(keys [][]byte) []byte { return keys[max(0, len(keys)-2)] } }},
		{Name: "rotation-forgets", Mistake: "Decrypt knows the newest key only.", Caught: "KMS2-ROTATION-OLD-DECRYPTS", Change: decryptsWithTheNewest},
		{Name: "rotation-returns", Mistake: "For some time after a rotation, some calls of Status return the old key_id.", Caught: "KMS2-ROTATION-NO-RETURN", Change: returnsToTheOldKey},
		{Name: "rotation-reuses-ids", Mistake: "Two key_ids take turns.", Caught: "KMS2-ROTATION-NEW-ID",
			Also: []string{"KMS2-DECRYPT-OTHER-INSTANCE"}, Change: twoKeyIDs},
		{Name: "rotation-interrupts", Mistake: "Encrypt fails from a rotation until it is noticed.", Caught: "KMS2-ROTATION-SERVES", Change: failsUntilNoticed},
		{Name: "encrypt-torn-by-rotation", Mistake: "Encrypt takes the key, waits 100 ms, and answers with the key_id of then.", Caught: "KMS2-ROTATION-TEARS-NOTHING",
			Change: func(r *Reference) {
				r.Encrypt.after(func(ctx context.Context, _ *kmsapi.EncryptRequest, resp *kmsapi.EncryptResponse) {
					waitFor(ctx, longWait/2)
					if keys, err := r.KMS.Keys(); err == nil {
						resp.KeyId = KeyID(newest(keys))
					}
				})
			}},
	}
}

func keysOfTheStart(r *Reference) {
	first, err := r.KMS.Keys()
	if err != nil {
		return
	}
	onStatus(func(_ int, resp *kmsapi.StatusResponse) { resp.KeyId = KeyID(newest(first)) })(r)
	r.EncryptWith = func([][]byte) []byte { return newest(first) }
}

func decryptsWithTheNewest(r *Reference) {
	r.Decrypt.refuse(status.Error(codes.NotFound, "the key is no longer in use"), func(q *kmsapi.DecryptRequest) bool {
		keys, err := r.KMS.Keys()
		return err == nil && q.KeyId != KeyID(newest(keys))
	})
}

func returnsToTheOldKey(r *Reference) {
	var mu sync.Mutex
	count, seen := 0, time.Time{}
	onStatus(func(n int, resp *kmsapi.StatusResponse) {
		keys, err := r.KMS.Keys()
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if len(keys) != count {
			count, seen = len(keys), time.Now()
		}
		if count > 1 && n%7 == 0 && time.Since(seen) < 1500*time.Millisecond {
			resp.KeyId = KeyID(keys[count-2])
		}
	})(r)
}

func twoKeyIDs(r *Reference) {
	renameKeyID(func(id string) string {
		keys, _ := r.KMS.Keys()
		for n, key := range keys {
			if KeyID(key) == id {
				return [...]string{"blue", "green"}[n%2]
			}
		}
		return id
	})(r)
}

func failsUntilNoticed(r *Reference) {
	var mu sync.Mutex
	noticed := 0
	var since time.Time
	lag := func() (keys [][]byte, behind bool) {
		keys, err := r.KMS.Keys()
		if err != nil {
			return nil, false
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case noticed == 0:
			noticed = len(keys)
		case len(keys) == noticed:
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > 300*time.Millisecond:
			noticed, since = len(keys), time.Time{}
		}
		return keys[:noticed], len(keys) != noticed
	}
	onStatus(func(_ int, resp *kmsapi.StatusResponse) {
		if keys, _ := lag(); len(keys) > 0 {
			resp.KeyId = KeyID(newest(keys))
		}
	})(r)
	r.Encrypt.refuse(status.Error(codes.FailedPrecondition, "the key version is not the primary one"), func(*kmsapi.EncryptRequest) bool {
		_, behind := lag()
		return behind
	})
}
