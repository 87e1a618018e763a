package plugin

import (
	"bytes"
	"context"
	"crypto/subtle"
	"maps"
	"slices"
)

func ciphertextSize(ctx context.Context, p *Plugin, s Sealed) error {
	p.Measure("ciphertext of %d bytes", len(s.Ciphertext))
	if len(s.Ciphertext) > maxCiphertextBytes {
		return found("Encrypt of 32 bytes", s.EncryptResponse, "a ciphertext of 1 to 1024 bytes")
	}
	return nil
}

const ciphertextHidesID = "KMS2-ENCRYPT-CIPHERTEXT-HIDES"

func ciphertextHides(ctx context.Context, p *Plugin, s Sealed) error {
	if how := reveals(s.Ciphertext, s.Plaintext); how != "" {
		return found("Encrypt of 32 bytes", "the ciphertext has a part of the plaintext "+how, "a ciphertext without the plaintext")
	}
	return nil
}

func ciphertextKeystream(ctx context.Context, p *Plugin) error {
	var all []Sealed
	for range 4 {
		s, err := p.Seal(ctx)
		if err != nil {
			return err
		}
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
		resp, err := p.Encrypt(ctx, plaintext)
		if err != nil {
			return found("Encrypt of one of several similar plaintexts", err, "a ciphertext")
		}
		for _, other := range all {
			if bytes.Equal(other.Ciphertext, resp.Ciphertext) && other.KeyId == resp.KeyId && maps.EqualFunc(other.Annotations, resp.Annotations, slices.Equal[[]byte]) {
				return found("Encrypt of two plaintexts that differ in one bit", "ciphertext, key_id and annotations are equal", "answers that differ")
			}
		}
		all = append(all, Sealed{plaintext, resp})
	}
	return nil
}

func envelopeSamePlaintext(ctx context.Context, p *Plugin) error {
	first, err := p.Seal(ctx)
	if err != nil {
		return err
	}
	all := []Sealed{first}
	for range 2 {
		resp, err := p.Encrypt(ctx, first.Plaintext)
		if err != nil {
			return found("Encrypt of a plaintext that was encrypted before", err, "a ciphertext")
		}
		all = append(all, Sealed{first.Plaintext, resp})
	}
	if bytes.Equal(all[0].Ciphertext, all[1].Ciphertext) {
		p.Measure("equal plaintexts get equal ciphertexts")
	}
	return p.unsealAll(ctx, all, "Decrypt of one of three ciphertexts of the same plaintext")
}
