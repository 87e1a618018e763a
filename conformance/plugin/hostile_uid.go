package plugin

import (
	"context"
	"strings"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

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
