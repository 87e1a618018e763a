package plugin

import (
	"cmp"
	"context"
	"fmt"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

// Ids of checks on which others of this area depend.
const (
	hostileStatusID        = "KMS2-HOSTILE-STATUS"
	hostileGarbageID       = "KMS2-HOSTILE-GARBAGE"
	hostileTruncatedID     = "KMS2-HOSTILE-CIPHERTEXT-TRUNCATED"
	hostileFlippedID       = "KMS2-HOSTILE-CIPHERTEXT-FLIPPED"
	hostileEmptyID         = "KMS2-HOSTILE-CIPHERTEXT-EMPTY"
	hostileKeyIDID         = "KMS2-HOSTILE-KEY-ID-UNKNOWN"
	hostileNoKeyIDID       = "KMS2-HOSTILE-KEY-ID-MISSING"
	hostileNoAnnotationsID = "KMS2-HOSTILE-ANNOTATIONS-MISSING"
	hostileAlteredID       = "KMS2-HOSTILE-ANNOTATIONS-ALTERED"
	hostileUIDID           = "KMS2-HOSTILE-UID-MISSING"
)

// hostile are the checks of requests that a correct kube-apiserver does not send. A damaged etcd, a restored backup, another client of the socket
// or a later release may. A plugin may refuse such a request with any status. It must not return a plaintext that was not encrypted, must not
// leave the call without an answer, and must serve the next one.
func hostile() []Check {
	return []Check{
		hostileStatus(), hostileGarbage(),
		hostileCiphertextEmpty(), hostileCiphertextTruncated(), hostileCiphertextExtended(), hostileCiphertextFlipped(), hostileCiphertextSpliced(),
		hostileKeyIDUnknown(), hostileKeyIDMissing(), hostileKeyIDHuge(),
		hostileAnnotationsMissing(), hostileAnnotationsAltered(), hostileAnnotationsSwapped(), hostileAnnotationsExtra(),
		hostileUIDMissing(), hostileUIDMalformed(), hostilePlaintextHuge(), hostileMessageOversized(),
		protoUnknownFields(), protoFieldOrder(), protoDuplicated(), protoTruncated(), protoWrongTypes(), protoInvalidUTF8(), protoEmpty(),
		hostileKeepsServing(),
	}
}

// Sources and consequences of this area.
const (
	sourceDecrypted = sourceProto + ": DecryptResponse.plaintext is the decrypted data"
	sourceGRPC      = "github.com/grpc/grpc/doc/PROTOCOL-HTTP2.md, section Responses"
	sourceProtobuf  = "protobuf.dev/programming-guides/encoding"

	consequenceWrong = "kube-apiserver takes the bytes for its seed. The read of the object fails with an error of the data, not of the plugin (message authentication failed)."
	consequenceEnds  = "Every other call fails until the plugin has been started again."
)

// hostileCheck is a check that begins with a valid ciphertext. Its profile is Robustness if it names no other.
func hostileCheck(c conformance.Check, run func(context.Context, *Plugin, Sealed) error, after ...string) Check {
	c.Profile = cmp.Or(c.Profile, conformance.Robustness)
	return Check{
		Check: c,
		After: append([]string{RoundTrip, hostileStatusID}, after...),
		Run:   withSealed(run),
	}
}

func hostileStatus() Check {
	return Check{
		Check: conformance.Check{
			ID: hostileStatusID, Profile: conformance.Robustness,
			Title:       "a refusal is a status",
			Rule:        "A Decrypt that the plugin refuses ends with a gRPC status. The plugin does not break the connection or reset the call.",
			Source:      sourceGRPC + ": the status of a call is sent in its trailers",
			Consequence: "kube-apiserver shows a broken connection (Unavailable) in place of the cause, and its other calls on the connection fail too.",
		},
		After: []string{RoundTrip},
		Run: withSealed(func(ctx context.Context, p *Plugin, s Sealed) error {
			ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
			defer cancel()
			var d delivery
			q := &kmsapi.DecryptRequest{Uid: p.UID(), Ciphertext: p.Bytes(48), KeyId: s.KeyId, Annotations: s.Annotations}
			if _, err := p.Client().Decrypt(ctx, q, d.options()...); err != nil { // success is judged by KMS2-HOSTILE-GARBAGE
				return d.judge("Decrypt of 48 random bytes", err, p.timing.Call)
			}
			return nil
		}),
	}
}

// failingCalls is how many refused calls come in a row.
const failingCalls = 200

func hostileKeepsServing() Check {
	return hostileCheck(conformance.Check{
		ID: "KMS2-HOSTILE-KEEPS-SERVING", Profile: conformance.Extended,
		Title:       "failures do not add up",
		Rule:        "After 200 Decrypts in a row that fail, the plugin encrypts and decrypts as before.",
		Source:      sourceProto + ": rpc Decrypt; " + sourceEnvelope + ": each read of an object that cannot be decrypted calls Decrypt again",
		Consequence: "One damaged object, which clients read again and again, makes all data unreadable: failed to decrypt DEK.",
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		n, err := repeat(p, failingCalls, p.timing.Load, func(i int) error {
			call, cancel := context.WithTimeout(ctx, p.timing.Call)
			defer cancel()
			var d delivery
			q := &kmsapi.DecryptRequest{Uid: p.UID(), Ciphertext: p.Bytes(SeedBytes), KeyId: s.KeyId, Annotations: s.Annotations}
			if _, err := p.Client().Decrypt(call, q, d.options()...); err != nil {
				return d.judge(fmt.Sprintf("Decrypt of random bytes, call %d of %d", i+1, failingCalls), err, p.timing.Call)
			}
			return nil
		})
		if err != nil {
			return err
		}
		after := fmt.Sprintf(" after %d Decrypts of random bytes", n)
		if err := p.Unseal(ctx, s, "Decrypt of a valid ciphertext"+after); err != nil {
			return err
		}
		fresh, err := p.Seal(ctx)
		if err != nil {
			return err
		}
		return p.Unseal(ctx, fresh, "Decrypt of a new ciphertext"+after)
	})
}
