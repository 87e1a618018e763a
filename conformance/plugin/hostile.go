package plugin

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	kmsapi "k8s.io/kms/apis/v2"
)

// tryRandom decrypts random bytes. The plugin may answer, which KMS2-HOSTILE-GARBAGE judges, or refuse them with a status.
func tryRandom(ctx context.Context, p *Plugin, s Sealed, what string, size int) error {
	q := s.request(p)
	q.Ciphertext = p.Bytes(size)
	_, err := try(ctx, what, p.timing.Call, func(ctx context.Context, options ...grpc.CallOption) (*kmsapi.DecryptResponse, error) {
		return p.Client().Decrypt(ctx, q, options...)
	})
	return err
}

func hostileStatus(ctx context.Context, p *Plugin, s Sealed) error {
	return tryRandom(ctx, p, s, "Decrypt of 48 random bytes", 48)
}

// failingCalls is how many refused calls come in a row.
const failingCalls = 200

func hostileKeepsServing(ctx context.Context, p *Plugin, s Sealed) error {
	n := need(repeat(p, failingCalls, p.timing.Load, func(i int) error {
		return tryRandom(ctx, p, s, fmt.Sprintf("Decrypt of random bytes, call %d of %d", i+1, failingCalls), SeedBytes)
	}))
	after := fmt.Sprintf(" after %d Decrypts of random bytes", n)
	must(p.Unseal(ctx, s, "Decrypt of a valid ciphertext"+after))
	return p.roundTrip(ctx, "Decrypt of a new ciphertext"+after)
}

// statusAfterRefusals provokes three refusals of Decrypt and watches Status then. What other checks provoked may still show at its begin.
func statusAfterRefusals(ctx context.Context, p *Plugin) error {
	if _, ok := p.untilHealthy(ctx); !ok {
		_ = p.heal(ctx)
		return found(fmt.Sprintf("Status for %v after Decrypts that the plugin refused", p.timing.Notice), "no healthz ok", `healthz "ok"`)
	}
	s := need(p.Seal(ctx))
	before := need(p.answer(ctx, "Status"))
	flipped := bytes.Clone(s.Ciphertext)
	flipped[len(flipped)/2] ^= 1
	refused := 0
	for _, altered := range []*kmsapi.EncryptResponse{
		{Ciphertext: p.Bytes(len(s.Ciphertext)), KeyId: s.KeyId, Annotations: s.Annotations},
		{Ciphertext: s.Ciphertext, KeyId: hex.EncodeToString(p.Bytes(16)), Annotations: s.Annotations},
		{Ciphertext: flipped, KeyId: s.KeyId, Annotations: s.Annotations},
	} {
		if _, err := p.Decrypt(ctx, altered); err != nil {
			refused++
		}
	}
	if refused == 0 {
		return unsupported{"the plugin refused none of three Decrypts of altered ciphertexts and key_ids"}
	}
	p.Measure("%d of 3 Decrypts were refused", refused)
	err := p.watch(ctx, p.timing.Watch, func(ctx context.Context) error {
		return stays(ctx, p, before, fmt.Sprintf("Status after %d Decrypts that the plugin refused", refused))
	})
	if err != nil {
		_ = p.heal(ctx)
	}
	return err
}

// stays is a Finding unless Status is "ok" with the key_id of before.
func stays(ctx context.Context, p *Plugin, before *kmsapi.StatusResponse, what string) error {
	expected := `healthz "ok" and key_id ` + quote(before.KeyId)
	switch now, err := p.Status(ctx); {
	case err != nil:
		return found(what, err, expected)
	case now.Healthz != "ok" || now.KeyId != before.KeyId:
		return found(what, now, expected)
	}
	return nil
}

// decryptCiphertext decrypts another ciphertext with the key_id and the annotations of s.
func decryptCiphertext(ctx context.Context, p *Plugin, s Sealed, what string, ciphertext []byte, others ...Sealed) error {
	return tryAltered(ctx, p, s, what, func(q *kmsapi.DecryptRequest) { q.Ciphertext = ciphertext }, others...)
}

func hostileGarbage(ctx context.Context, p *Plugin, s Sealed) error {
	return each([]int{1, 16, 64, len(s.Ciphertext), 1024}, func(size int) error {
		return decryptCiphertext(ctx, p, s, fmt.Sprintf("Decrypt of %d random bytes", size), p.Bytes(size))
	})
}

func hostileCiphertextEmpty(ctx context.Context, p *Plugin, s Sealed) error {
	return decryptCiphertext(ctx, p, s, "Decrypt of an empty ciphertext", nil)
}

func hostileCiphertextTruncated(ctx context.Context, p *Plugin, s Sealed) error {
	n := len(s.Ciphertext)
	return each([]int{n - 1, n - 2, n - 16, n * 3 / 4, n / 2, n / 3, n / 4, 12, 1}, func(keep int) error {
		if keep <= 0 || keep >= n {
			return nil
		}
		return decryptCiphertext(ctx, p, s, fmt.Sprintf("Decrypt of the first %d of %d bytes of a ciphertext", keep, n), slices.Clone(s.Ciphertext[:keep]))
	})
}

func hostileCiphertextExtended(ctx context.Context, p *Plugin, s Sealed) error {
	return each([][]byte{{0}, {'A'}, p.Bytes(16), s.Ciphertext}, func(extra []byte) error {
		must(decryptCiphertext(ctx, p, s, fmt.Sprintf("Decrypt with %d bytes after the ciphertext", len(extra)), slices.Concat(s.Ciphertext, extra)))
		return decryptCiphertext(ctx, p, s, fmt.Sprintf("Decrypt with %d bytes before the ciphertext", len(extra)), slices.Concat(extra, s.Ciphertext))
	})
}

// flippedBits is how many bits of a ciphertext are inverted, one at a time.
const flippedBits = 64

func hostileCiphertextFlipped(ctx context.Context, p *Plugin, s Sealed) error {
	bits := len(s.Ciphertext) * 8
	n := min(flippedBits, bits)
	_, err := repeat(p, n, p.timing.Load, func(i int) error {
		bit := i * (bits - 1) / max(n-1, 1) // from the first to the last
		flipped := slices.Clone(s.Ciphertext)
		flipped[bit/8] ^= 1 << (bit % 8)
		return decryptCiphertext(ctx, p, s, fmt.Sprintf("Decrypt of a ciphertext of %d bytes whose bit %d was inverted", len(s.Ciphertext), bit), flipped)
	})
	return err
}

func hostileCiphertextSpliced(ctx context.Context, p *Plugin, s Sealed) error {
	other := need(p.Seal(ctx))
	n := min(len(s.Ciphertext), len(other.Ciphertext))
	return each([]int{n / 4, n / 2, n * 3 / 4, n - 16}, func(at int) error {
		if at <= 0 {
			return nil
		}
		what := fmt.Sprintf("Decrypt of the first %d bytes of one ciphertext and the rest of another", at)
		return decryptCiphertext(ctx, p, s, what, slices.Concat(s.Ciphertext[:at], other.Ciphertext[at:]), other)
	})
}

// hostileAnnotations is a check with annotations by description. Their order does not matter.
func hostileAnnotations(variants func(*Plugin, Sealed) map[string]map[string][]byte) JudgeFunc {
	return withSealed(func(ctx context.Context, p *Plugin, s Sealed) error {
		all := variants(p, s)
		return each(sortedKeys(all), func(how string) error {
			return tryAltered(ctx, p, s, "Decrypt "+how, func(q *kmsapi.DecryptRequest) { q.Annotations = all[how] })
		})
	})
}

func annotationsMissing(_ *Plugin, s Sealed) map[string]map[string][]byte {
	empty := map[string][]byte{}
	for key := range s.Annotations {
		empty[key] = nil
	}
	return map[string]map[string][]byte{"without annotations": nil, "with annotations without a value": empty}
}

// maxAltered is how many annotations are altered, one at a time.
const maxAltered = 16

func annotationsAltered(p *Plugin, s Sealed) map[string]map[string][]byte {
	all := map[string]map[string][]byte{}
	for i, key := range sortedKeys(s.Annotations)[:min(len(s.Annotations), maxAltered)] {
		value := s.Annotations[key]
		flipped := bytes.Clone(value)
		if len(value) > 0 {
			flipped[len(value)/2] ^= 1
		}
		for how, altered := range map[string][]byte{
			"an inverted bit in": flipped, "random bytes in": p.Bytes(max(len(value), 1)), "a byte after": slices.Concat(value, []byte{'0'}),
		} {
			annotations := s.request(p).Annotations
			annotations[key] = altered
			all[fmt.Sprintf("with %s annotation %d of %d", how, i+1, len(s.Annotations))] = annotations
		}
	}
	return all
}

func annotationsExtra(p *Plugin, s Sealed) map[string]map[string][]byte {
	few, huge := s.request(p).Annotations, s.request(p).Annotations
	if few == nil {
		few, huge = map[string][]byte{}, map[string][]byte{}
	}
	few["a.example.com"], few["z.example.com"], few["not a domain"] = []byte("1"), nil, p.Bytes(16)
	huge["huge.example.com"] = p.Bytes(1 << 20)
	return map[string]map[string][]byte{"with three further annotations": few, "with a further annotation of 1 MiB": huge}
}

func annotationsSwapped(ctx context.Context, p *Plugin, s Sealed) error {
	other := need(p.Seal(ctx))
	pairs := [][2]Sealed{{s, other}, {other, s}}
	return each([]int{0, 1}, func(i int) error {
		what := fmt.Sprintf("Decrypt of ciphertext %d of 2 with the annotations of the other", i+1)
		return tryAltered(ctx, p, pairs[i][0], what, func(q *kmsapi.DecryptRequest) { q.Annotations = pairs[i][1].request(p).Annotations }, pairs[i][1])
	})
}

// hostileKeyIDs is a check with other key_ids, some of which are made of the right one.
func hostileKeyIDs(keyIDs func(*Plugin, string) []string) JudgeFunc {
	return withSealed(func(ctx context.Context, p *Plugin, s Sealed) error {
		return each(keyIDs(p, s.KeyId), func(keyID string) error {
			return tryAltered(ctx, p, s, "Decrypt with key_id "+quote(keyID), func(q *kmsapi.DecryptRequest) { q.KeyId = keyID })
		})
	})
}

func unknownKeyIDs(p *Plugin, keyID string) []string {
	return []string{hex.EncodeToString(p.Bytes(16)), keyID + "0", strings.ToUpper(keyID), "../../" + keyID, "%s%n", "*"}
}

// hostileUIDs is a check with uids as kube-apiserver does not make them.
func hostileUIDs(uids ...string) JudgeFunc {
	return withSealed(func(ctx context.Context, p *Plugin, s Sealed) error {
		return each(uids, func(uid string) error {
			with := "with uid " + quote(uid)
			must(mayRoundTrip(ctx, p, with, &kmsapi.EncryptRequest{Uid: uid, Plaintext: p.Bytes(SeedBytes)}))
			return tryAltered(ctx, p, s, "Decrypt "+with, func(q *kmsapi.DecryptRequest) { q.Uid = uid })
		})
	})
}

// grpcLimitBytes is the size of the messages that gRPC servers accept by default.
const grpcLimitBytes = 4 << 20

func hostileMessageOversized(ctx context.Context, p *Plugin, s Sealed) error {
	const what = "Encrypt of 5 MiB"
	q := &kmsapi.EncryptRequest{Uid: p.UID(), Plaintext: p.Bytes(5 << 20)}
	within := p.patience(len(q.Plaintext))
	call, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err := p.Client().Encrypt(call, q)
	if err != nil && call.Err() != nil && ctx.Err() == nil { // a server may end such a call in any way, but it must end
		return found(what, err, "an answer or an error within "+within.String())
	}
	return p.Unseal(ctx, s, "Decrypt of a valid ciphertext after "+what)
}
