package plugin

import (
	"bytes"
	"context"
	"crypto/subtle"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kmsapi "k8s.io/kms/apis/v2"
)

// Limits of kube-apiserver for what Encrypt returns, in bytes (envelope.go).
const (
	maxCiphertextBytes  = 1024
	maxAnnotationsBytes = 32 << 10
)

// encryptHas judges a single answer of Encrypt.
func encryptHas(expected string, ok func(Sealed) bool) JudgeFunc {
	return withSealed(func(_ context.Context, _ *Plugin, s Sealed) error {
		if !ok(s) {
			return found(fmt.Sprintf("Encrypt of %d bytes", SeedBytes), s.EncryptResponse, expected)
		}
		return nil
	})
}

func encryptAnswers(ctx context.Context, p *Plugin) error {
	_, err := p.Seal(ctx)
	return err
}

func envelopeRoundTrip(ctx context.Context, p *Plugin) error {
	for range 3 {
		must(p.roundTrip(ctx, "Decrypt with what Encrypt returned"))
	}
	return nil
}

func envelopeUIDReused(ctx context.Context, p *Plugin) error {
	uid := p.UID()
	var all []Sealed
	for _, what := range []string{"Encrypt with a new uid", "Encrypt of another plaintext with the same uid"} {
		plaintext := p.Bytes(SeedBytes)
		resp := need(tryEncrypt(ctx, p, what, &kmsapi.EncryptRequest{Uid: uid, Plaintext: plaintext}))
		if resp != nil {
			all = append(all, Sealed{plaintext, resp})
		}
	}
	must(p.unsealAll(ctx, all, "Decrypt of a ciphertext whose uid another request had too"))
	uid = p.UID()
	return each(all, func(s Sealed) error {
		return tryAltered(ctx, p, s, "Decrypt of several ciphertexts with the same uid", func(q *kmsapi.DecryptRequest) { q.Uid = uid })
	})
}

func encryptKeyIDEqualsStatus(ctx context.Context, p *Plugin, before *kmsapi.StatusResponse) error {
	s := need(p.Seal(ctx))
	if s.KeyId == before.KeyId {
		return nil
	}
	after := need(p.answer(ctx, "Status after Encrypt")) // the KEK may have been rotated in between
	if s.KeyId != after.KeyId {
		return found("Encrypt", s.EncryptResponse, "the key_id of Status, "+quote(after.KeyId))
	}
	return nil
}

// stableEncrypts is how many answers of Encrypt are compared.
const stableEncrypts = 50

func encryptKeyIDStable(ctx context.Context, p *Plugin, before *kmsapi.StatusResponse) error {
	var other error
	n := need(repeat(p, stableEncrypts, p.timing.Load, func(i int) error {
		s, err := p.Seal(ctx)
		if err == nil && s.KeyId != before.KeyId && other == nil {
			other = found(fmt.Sprintf("Encrypt, call %d of %d", i+1, stableEncrypts), s.EncryptResponse, "the key_id of Status, "+quote(before.KeyId))
		}
		return err
	}))
	after := need(p.answer(ctx, fmt.Sprintf("Status after %d Encrypts", n)))
	if after.KeyId != before.KeyId {
		p.Measure("the key_id of Status changed meanwhile, so nothing was compared")
		return nil
	}
	return other
}

func annotationKeys(ctx context.Context, p *Plugin, s Sealed) error {
	p.Measure("%d annotations", len(s.Annotations))
	for key := range s.Annotations {
		if wrong := validation.IsFullyQualifiedDomainName(field.NewPath("annotations"), key); len(wrong) > 0 {
			return found("Encrypt", "annotation "+quote(key)+": "+clip(wrong.ToAggregate().Error()), "keys such as key.example.com")
		}
	}
	return nil
}

func annotationSize(ctx context.Context, p *Plugin, s Sealed) error {
	size := 0
	for key, value := range s.Annotations {
		size += len(key) + len(value)
	}
	p.Measure("annotations of %d bytes", size)
	if size > maxAnnotationsBytes {
		return found("Encrypt", fmt.Sprintf("annotations of %d bytes", size), "at most 32768 bytes")
	}
	return nil
}

func annotationsHide(ctx context.Context, p *Plugin, s Sealed) error {
	for key, value := range s.Annotations {
		for _, data := range [][]byte{[]byte(key), value} {
			if how := reveals(data, s.Plaintext); how != "" {
				return found("Encrypt", "an annotation has a part of the plaintext "+how, "annotations without the plaintext")
			}
		}
	}
	return nil
}

func ciphertextSize(ctx context.Context, p *Plugin, s Sealed) error {
	p.Measure("ciphertext of %d bytes", len(s.Ciphertext))
	if len(s.Ciphertext) > maxCiphertextBytes {
		return found("Encrypt of 32 bytes", s.EncryptResponse, "a ciphertext of 1 to 1024 bytes")
	}
	return nil
}

func ciphertextHides(ctx context.Context, p *Plugin, s Sealed) error {
	if how := reveals(s.Ciphertext, s.Plaintext); how != "" {
		return found("Encrypt of 32 bytes", "the ciphertext has a part of the plaintext "+how, "a ciphertext without the plaintext")
	}
	return nil
}

func ciphertextKeystream(ctx context.Context, p *Plugin) error {
	var all []Sealed
	for range 4 {
		s := need(p.Seal(ctx))
		if slices.ContainsFunc(all, func(o Sealed) bool { return shareKeystream(o, s) }) {
			return found("Encrypt of two plaintexts", "the exclusive or of the ciphertexts has the exclusive or of the plaintexts", "ciphertexts that are independent of each other")
		}
		all = append(all, s)
	}
	return nil
}

// shareKeystream reports whether two ciphertexts differ, somewhere, in just the bits in which their plaintexts differ.
func shareKeystream(a, b Sealed) bool {
	difference := make([]byte, SeedBytes)
	subtle.XORBytes(difference, a.Plaintext, b.Plaintext)
	window := make([]byte, SeedBytes)
	left, right := decodings(a.Ciphertext), decodings(b.Ciphertext)
	for i := range min(len(left), len(right)) {
		l, r := left[i].data, right[i].data
		for at := 0; at+SeedBytes <= min(len(l), len(r)); at++ {
			subtle.XORBytes(window, l[at:at+SeedBytes], r[at:at+SeedBytes])
			if slices.Equal(window, difference) {
				return true
			}
		}
	}
	return false
}

func envelopeDistinct(ctx context.Context, p *Plugin) error {
	base := p.Bytes(SeedBytes)
	var all []Sealed
	for _, flip := range []int{-1, 0, SeedBytes / 2, SeedBytes - 1} {
		plaintext := bytes.Clone(base)
		if flip >= 0 {
			plaintext[flip] ^= 1
		}
		s := need(p.seal(ctx, plaintext, "one of several similar plaintexts"))
		for _, other := range all {
			if bytes.Equal(other.Ciphertext, s.Ciphertext) && other.KeyId == s.KeyId && maps.EqualFunc(other.Annotations, s.Annotations, slices.Equal[[]byte]) {
				return found("Encrypt of two plaintexts that differ in one bit", "ciphertext, key_id and annotations are equal", "answers that differ")
			}
		}
		all = append(all, s)
	}
	return nil
}

func envelopeSamePlaintext(ctx context.Context, p *Plugin) error {
	first := need(p.Seal(ctx))
	all := []Sealed{first}
	for range 2 {
		all = append(all, need(p.seal(ctx, first.Plaintext, "a plaintext that was encrypted before")))
	}
	if bytes.Equal(all[0].Ciphertext, all[1].Ciphertext) {
		p.Measure("equal plaintexts get equal ciphertexts")
	}
	return p.unsealAll(ctx, all, "Decrypt of one of three ciphertexts of the same plaintext")
}

func envelopeEdgeBytes(ctx context.Context, p *Plugin) error {
	for _, edge := range []struct {
		what, begin, end string
	}{
		{"begins with a zero", "\x00", ""}, {"begins with four zeros", "\x00\x00\x00\x00", ""},
		{"ends with a zero", "", "\x00"}, {"ends with four zeros", "", "\x00\x00\x00\x00"},
		{"begins and ends with a line feed", "\n", "\n"}, {"begins and ends with a space", " ", " "},
		{"ends with the byte 1", "", "\x01"}, {"ends with 16 bytes 16", "", string(bytes.Repeat([]byte{16}, 16))},
		{"ends with the bits 1000 0000 and zeros", "", "\x80\x00\x00\x00"},
	} {
		plaintext := p.Bytes(SeedBytes)
		copy(plaintext, edge.begin)
		copy(plaintext[SeedBytes-len(edge.end):], edge.end)
		must(p.Unseal(ctx, need(p.seal(ctx, plaintext, "a seed that "+edge.what)), "Decrypt of a seed that "+edge.what))
	}
	return nil
}

func envelopeUniformBytes(ctx context.Context, p *Plugin) error {
	return each([]byte{0x00, 0xFF}, func(b byte) error {
		return mayEncrypt(ctx, p, bytes.Repeat([]byte{b}, SeedBytes), fmt.Sprintf("32 bytes 0x%02X", b))
	})
}

func envelopeTextBytes(ctx context.Context, p *Plugin) error {
	return each([]string{
		"QUJDREVGR0hJSktMTU5PUFFSU1RVVldY", "0123456789abcdef0123456789abcdef", `{"key":"value","list":[1,2,3,4]}`,
		"-----BEGIN PRIVATE KEY-----\nMII=", "vault:v1:QUJDREVGR0hJSktMTU5PUFE=", "%41%42%43\\x44\\u0045&#70;$G{H}\t\r\n",
	}, func(text string) error {
		plaintext := fmt.Sprintf("%-*.*s", SeedBytes, SeedBytes, text)
		return mayEncrypt(ctx, p, []byte(plaintext), "the text "+quote(plaintext))
	})
}

func plaintextEmpty(ctx context.Context, p *Plugin) error {
	return mayEncrypt(ctx, p, nil, "an empty plaintext")
}

// tryPlaintexts encrypts and decrypts plaintexts of some sizes, which a plugin may refuse.
func tryPlaintexts(sizes ...int) JudgeFunc {
	return func(ctx context.Context, p *Plugin) error {
		return each(sizes, func(size int) error { return mayEncrypt(ctx, p, p.Bytes(size), fmt.Sprintf("%d bytes", size)) })
	}
}
