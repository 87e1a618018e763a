package plugin

import (
	"cmp"
	"context"

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
		Run: func(ctx context.Context, p *Plugin) error {
			s, err := p.Seal(ctx)
			if err != nil {
				return err
			}
			return run(ctx, p, s)
		},
	}
}
