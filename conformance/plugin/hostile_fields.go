package plugin

import (
	"context"
	"encoding/hex"
	"strings"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

// hostileKeyID is a check with other key_ids, some of which are made of the right one.
func hostileKeyID(id, title, what string, keyIDs func(*Plugin, string) []string, after ...string) Check {
	return hostileCheck(conformance.Check{
		ID:          id,
		Title:       title,
		Rule:        "Decrypt with " + what + " is an error, or returns the plaintext that was encrypted.",
		Source:      sourceDecrypted + "; DecryptRequest.key_id is that of the encryption",
		Consequence: consequenceWrong,
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		return each(keyIDs(p, s.KeyId), func(keyID string) error {
			return tryAltered(ctx, p, s, "Decrypt with key_id "+quote(keyID), func(q *kmsapi.DecryptRequest) { q.KeyId = keyID })
		})
	}, after...)
}

func unknownKeyIDs(p *Plugin, keyID string) []string {
	return []string{hex.EncodeToString(p.Bytes(16)), keyID + "0", strings.ToUpper(keyID), "../../" + keyID, "%s%n", "*"}
}

// hostileUID is a check with uids as kube-apiserver does not make them.
func hostileUID(id, title, what string, after []string, uids ...string) Check {
	return hostileCheck(conformance.Check{
		ID:          id,
		Title:       title,
		Rule:        "Encrypt and Decrypt " + what + " are served or refused.",
		Source:      sourceKEP + ", section Observability: the uid is always present; " + sourceProto + ": uid is a string without a format",
		Consequence: consequenceEnds,
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		return each(uids, func(uid string) error {
			with := "with uid " + quote(uid)
			if err := mayRoundTrip(ctx, p, with, &kmsapi.EncryptRequest{Uid: uid, Plaintext: p.Bytes(SeedBytes)}); err != nil {
				return err
			}
			return tryAltered(ctx, p, s, "Decrypt "+with, func(q *kmsapi.DecryptRequest) { q.Uid = uid })
		})
	}, after...)
}

// grpcLimitBytes is the size of the messages that gRPC servers accept by default.
const grpcLimitBytes = 4 << 20

func hostilePlaintextHuge(ctx context.Context, p *Plugin, _ Sealed) error {
	return tryPlaintexts(1<<20, grpcLimitBytes-1<<10)(ctx, p)
}

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
