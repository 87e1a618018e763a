package plugin

import (
	"context"
	"encoding/hex"
	"strings"

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
