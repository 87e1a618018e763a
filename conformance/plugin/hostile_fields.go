package plugin

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func hostileKeyIDUnknown() Check {
	return hostileKeyID(hostileKeyIDID, "an unknown key_id decrypts nothing wrong", "a key_id that the plugin never returned",
		func(p *Plugin, s Sealed) []string {
			return []string{hex.EncodeToString(p.Bytes(16)), s.KeyId + "0", strings.ToUpper(s.KeyId), "../../" + s.KeyId, "%s%n", "*"}
		})
}

func hostileKeyIDMissing() Check {
	return hostileKeyID(hostileNoKeyIDID, "an empty key_id decrypts nothing wrong", "an empty key_id",
		func(*Plugin, Sealed) []string { return []string{""} }, hostileKeyIDID)
}

func hostileKeyIDHuge() Check {
	return hostileKeyID("KMS2-HOSTILE-KEY-ID-HUGE", "a huge key_id is refused", "a key_id of 1025 bytes or 2 MiB",
		func(*Plugin, Sealed) []string { return []string{strings.Repeat("k", 1025), strings.Repeat("k", 2<<20)} }, hostileKeyIDID)
}

func hostileKeyID(id, title, what string, keyIDs func(*Plugin, Sealed) []string, after ...string) Check {
	return hostileCheck(conformance.Check{
		ID:          id,
		Title:       title,
		Rule:        "Decrypt with " + what + " is an error, or returns the plaintext that was encrypted.",
		Source:      sourceDecrypted + "; DecryptRequest.key_id is that of the encryption",
		Consequence: consequenceWrong,
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		for _, keyID := range keyIDs(p, s) {
			q := s.request(p)
			q.KeyId = keyID
			if err := tryDecrypt(ctx, p, "Decrypt with key_id "+quote(keyID), q, s.Plaintext); err != nil {
				return err
			}
		}
		return nil
	}, after...)
}

func hostileUIDMissing() Check {
	return hostileUID(hostileUIDID, "a missing uid does no harm", "without a uid", nil, func() []string { return []string{""} })
}

func hostileUIDMalformed() Check {
	return hostileUID("KMS2-HOSTILE-UID-MALFORMED", "a malformed uid does no harm", "with a uid that is no UUID, has control characters or 1 MiB",
		[]string{hostileUIDID}, func() []string {
			return []string{"not a uuid", "00000000-0000-0000-0000-00000000000g", "line 1\nline 2\r\n\x00\x1b[31m", "../../../../etc/passwd", "%s%n%d{}${x}", strings.Repeat("u", 1<<20)}
		})
}

func hostileUID(id, title, what string, after []string, uids func() []string) Check {
	return hostileCheck(conformance.Check{
		ID:          id,
		Title:       title,
		Rule:        "Encrypt and Decrypt " + what + " are served or refused.",
		Source:      sourceKEP + ", section Observability: the uid is always present; " + sourceProto + ": uid is a string without a format",
		Consequence: consequenceEnds,
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		for _, uid := range uids() {
			with := " with uid " + quote(uid)
			plaintext := p.Bytes(SeedBytes)
			resp, err := tryEncrypt(ctx, p, "Encrypt"+with, &kmsapi.EncryptRequest{Uid: uid, Plaintext: plaintext})
			if err != nil {
				return err
			}
			if resp != nil {
				if err := p.Unseal(ctx, Sealed{plaintext, resp}, "Decrypt of what was encrypted"+with); err != nil {
					return err
				}
			}
			q := s.request(p)
			q.Uid = uid
			if err := tryDecrypt(ctx, p, "Decrypt"+with, q, s.Plaintext); err != nil {
				return err
			}
		}
		return nil
	}, after...)
}

// grpcLimitBytes is the size of the messages that gRPC servers accept by default.
const grpcLimitBytes = 4 << 20

func hostilePlaintextHuge() Check {
	return hostileCheck(conformance.Check{
		ID:          "KMS2-HOSTILE-PLAINTEXT-HUGE",
		Title:       "a huge plaintext is kept or refused",
		Rule:        "A plaintext of 1 MiB, or of almost 4 MiB, is decrypted to the same bytes, or Encrypt refuses it.",
		Source:      sourceProto + ": EncryptRequest.plaintext has no fixed length",
		Consequence: consequenceEnds,
	}, func(ctx context.Context, p *Plugin, _ Sealed) error {
		for _, size := range []int{1 << 20, grpcLimitBytes - 1<<10} {
			refused, err := mayRoundTrip(ctx, p, p.Bytes(size), fmt.Sprintf("%d bytes", size))
			if err != nil {
				return err
			}
			if refused {
				p.Measure("%d bytes are refused", size)
			}
		}
		return nil
	}, plaintextGrowingID)
}

func hostileMessageOversized() Check {
	return hostileCheck(conformance.Check{
		ID:          "KMS2-HOSTILE-MESSAGE-OVERSIZED",
		Title:       "a message over gRPC's limit ends nothing",
		Rule:        "After an Encrypt of 5 MiB, which is more than gRPC servers accept by default, the plugin serves the next call.",
		Source:      "grpc.io/docs: a message over the limit is refused with RESOURCE_EXHAUSTED; " + sourceProto + ": EncryptRequest.plaintext has no fixed length",
		Consequence: consequenceEnds,
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
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
	})
}
