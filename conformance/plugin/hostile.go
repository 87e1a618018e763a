package plugin

import (
	"cmp"
	"context"
	"fmt"
	"strings"

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
		{Check: conformance.Check{
			ID: hostileStatusID, Profile: conformance.Robustness,
			Title:       "a refusal is a status",
			Rule:        "A Decrypt that the plugin refuses ends with a gRPC status. The plugin does not break the connection or reset the call.",
			Source:      sourceGRPC + ": the status of a call is sent in its trailers",
			Consequence: "kube-apiserver shows a broken connection (Unavailable) in place of the cause, and its other calls on the connection fail too.",
		}, After: []string{RoundTrip}, Run: withSealed(hostileStatus)},
		hostileCheck(conformance.Check{
			ID:          hostileGarbageID,
			Title:       "random bytes are not decrypted",
			Rule:        "Decrypt of random bytes with a valid key_id is an error, or returns the plaintext of the annotations.",
			Source:      sourceDecrypted,
			Consequence: consequenceWrong,
		}, hostileGarbage),
		hostileCheck(conformance.Check{
			ID:          hostileEmptyID,
			Title:       "an empty ciphertext is not decrypted",
			Rule:        "Decrypt of an empty ciphertext is an error, or returns the plaintext of the annotations.",
			Source:      sourceDecrypted + "; EncryptResponse.ciphertext is not empty",
			Consequence: "kube-apiserver takes an empty plaintext for its seed. The error does not name the plugin.",
		}, hostileCiphertextEmpty, hostileGarbageID),
		hostileCheck(conformance.Check{
			ID:          hostileTruncatedID,
			Title:       "a truncated ciphertext is not decrypted",
			Rule:        "Decrypt of the first bytes of a ciphertext is an error, or returns the plaintext that was encrypted.",
			Source:      sourceDecrypted,
			Consequence: consequenceWrong,
		}, hostileCiphertextTruncated, hostileGarbageID),
		hostileCheck(conformance.Check{
			ID:          "KMS2-HOSTILE-CIPHERTEXT-EXTENDED",
			Title:       "bytes after a ciphertext add nothing",
			Rule:        "Decrypt of a ciphertext with further bytes before or after it is an error, or returns the plaintext that was encrypted.",
			Source:      sourceDecrypted,
			Consequence: consequenceWrong,
		}, hostileCiphertextExtended, hostileGarbageID, hostileTruncatedID),
		hostileCheck(conformance.Check{
			ID:          hostileFlippedID,
			Title:       "a damaged ciphertext is not decrypted",
			Rule:        "Decrypt of a ciphertext with one inverted bit is an error, or returns the plaintext that was encrypted.",
			Source:      sourceDecrypted,
			Consequence: consequenceWrong,
		}, hostileCiphertextFlipped, hostileGarbageID),
		hostileCheck(conformance.Check{
			ID:          "KMS2-HOSTILE-CIPHERTEXT-SPLICED",
			Title:       "mixed ciphertexts are not decrypted",
			Rule:        "Decrypt of the begin of one ciphertext and the end of another is an error, or returns one of the plaintexts that were encrypted.",
			Source:      sourceDecrypted,
			Consequence: consequenceWrong,
		}, hostileCiphertextSpliced, hostileGarbageID, hostileTruncatedID, hostileFlippedID),
		hostileKeyID(hostileKeyIDID, "an unknown key_id decrypts nothing wrong", "a key_id that the plugin never returned", unknownKeyIDs),
		hostileKeyID(hostileNoKeyIDID, "an empty key_id decrypts nothing wrong", "an empty key_id",
			func(*Plugin, string) []string { return []string{""} }, hostileKeyIDID),
		hostileKeyID("KMS2-HOSTILE-KEY-ID-HUGE", "a huge key_id is refused", "a key_id of 1025 bytes or 2 MiB",
			func(*Plugin, string) []string { return []string{strings.Repeat("k", 1025), strings.Repeat("k", 2<<20)} }, hostileKeyIDID),
		hostileAnnotations(hostileNoAnnotationsID, "missing annotations decrypt nothing wrong", "annotations that are missing or empty", annotationsMissing),
		hostileAnnotations(hostileAlteredID, "altered annotations decrypt nothing wrong", "annotations with another value", annotationsAltered),
		hostileCheck(conformance.Check{
			ID:          "KMS2-HOSTILE-ANNOTATIONS-SWAPPED",
			Title:       "annotations of another ciphertext",
			Rule:        "Decrypt of one ciphertext with the annotations of another is an error, or returns one of the plaintexts that were encrypted.",
			Source:      sourceDecrypted + "; DecryptRequest.annotations are those of the encryption",
			Consequence: consequenceWrong,
		}, annotationsSwapped, hostileAlteredID),
		hostileAnnotations("KMS2-HOSTILE-ANNOTATIONS-EXTRA", "further annotations decrypt nothing wrong", "further annotations, or with one of 1 MiB,", annotationsExtra),
		hostileUID(hostileUIDID, "a missing uid does no harm", "without a uid", nil, ""),
		hostileUID("KMS2-HOSTILE-UID-MALFORMED", "a malformed uid does no harm", "with a uid that is no UUID, has control characters or 1 MiB", []string{hostileUIDID},
			"not a uuid", "00000000-0000-0000-0000-00000000000g", "line 1\nline 2\r\n\x00\x1b[31m", "../../../../etc/passwd", "%s%n%d{}${x}", strings.Repeat("u", 1<<20)),
		hostileCheck(conformance.Check{
			ID:          "KMS2-HOSTILE-PLAINTEXT-HUGE",
			Title:       "a huge plaintext is kept or refused",
			Rule:        "A plaintext of 1 MiB, or of almost 4 MiB, is decrypted to the same bytes, or Encrypt refuses it.",
			Source:      sourceProto + ": EncryptRequest.plaintext has no fixed length",
			Consequence: consequenceEnds,
		}, hostilePlaintextHuge, plaintextGrowingID),
		hostileCheck(conformance.Check{
			ID:          "KMS2-HOSTILE-MESSAGE-OVERSIZED",
			Title:       "a message over gRPC's limit ends nothing",
			Rule:        "After an Encrypt of 5 MiB, which is more than gRPC servers accept by default, the plugin serves the next call.",
			Source:      "grpc.io/docs: a message over the limit is refused with RESOURCE_EXHAUSTED; " + sourceProto + ": EncryptRequest.plaintext has no fixed length",
			Consequence: consequenceEnds,
		}, hostileMessageOversized),
		hostileCheck(conformance.Check{
			ID: "KMS2-PROTO-UNKNOWN-FIELDS", Profile: conformance.Extended,
			Title:       "unknown fields are ignored",
			Rule:        "Encrypt and Decrypt with fields that the API does not have are served as without them.",
			Source:      "protobuf.dev/programming-guides/proto3, section Unknown Fields: a parser accepts fields that it does not know",
			Consequence: "A later kube-apiserver that sends a new field cannot use the plugin.",
		}, protoUnknownFields),
		hostileCheck(conformance.Check{
			ID:          "KMS2-PROTO-FIELD-ORDER",
			Title:       "fields may come in any order",
			Rule:        "Decrypt with fields and annotations in descending order is served.",
			Source:      sourceProtobuf + ", section Field Order: a parser accepts fields in any order; the entries of a map have no order",
			Consequence: "A kube-apiserver with another protobuf library, or another release of it, cannot read its data.",
		}, protoFieldOrder),
		hostileCheck(conformance.Check{
			ID:          "KMS2-PROTO-DUPLICATED",
			Title:       "the last of two equal fields counts",
			Rule:        "Encrypt with two plaintexts encrypts the last one, or refuses the request. Decrypt with two ciphertexts does the same.",
			Source:      sourceProtobuf + ", section Last One Wins",
			Consequence: "The plugin encrypts something else than what a kube-apiserver with another protobuf library sends.",
		}, protoDuplicated),
		hostileCheck(conformance.Check{
			ID:          "KMS2-PROTO-TRUNCATED",
			Title:       "a truncated message is refused",
			Rule:        "A message that ends within a field, or whose field claims 2 GiB, is refused and not served in part.",
			Source:      sourceProtobuf + ", section Length-Delimited Records",
			Consequence: "The plugin encrypts or decrypts something else than what was sent.",
		}, protoTruncated),
		hostileCheck(conformance.Check{
			ID:          "KMS2-PROTO-WRONG-TYPES",
			Title:       "fields of wrong types end nothing",
			Rule:        "A message whose fields have other wire types than those of the API is answered or refused.",
			Source:      sourceProtobuf + ", section Message Structure; " + sourceGRPC,
			Consequence: consequenceEnds,
		}, protoWrongTypes, hostileUIDID, hostileNoAnnotationsID),
		hostileCheck(conformance.Check{
			ID:          "KMS2-PROTO-INVALID-UTF8",
			Title:       "texts that are no UTF-8 end nothing",
			Rule:        "Encrypt and Decrypt with a uid or a key_id that is no valid UTF-8 are refused, or served by their other fields.",
			Source:      "protobuf.dev/programming-guides/proto3, section Scalar Value Types: a string contains UTF-8; " + sourceGRPC,
			Consequence: consequenceEnds,
		}, protoInvalidUTF8),
		hostileCheck(conformance.Check{
			ID:          "KMS2-PROTO-EMPTY",
			Title:       "an empty request decrypts nothing",
			Rule:        "Decrypt with an empty message is an error. Encrypt with an empty message is answered or refused.",
			Source:      sourceDecrypted + "; " + sourceProtobuf + ": all fields of an empty message have their default values",
			Consequence: consequenceWrong,
		}, protoEmpty, hostileEmptyID, hostileNoKeyIDID, hostileUIDID, hostileNoAnnotationsID),
		hostileCheck(conformance.Check{
			ID: "KMS2-HOSTILE-KEEPS-SERVING", Profile: conformance.Extended,
			Title:       "failures do not add up",
			Rule:        "After 200 Decrypts in a row that fail, the plugin encrypts and decrypts as before.",
			Source:      sourceProto + ": rpc Decrypt; " + sourceEnvelope + ": each read of an object that cannot be decrypted calls Decrypt again",
			Consequence: "One damaged object, which clients read again and again, makes all data unreadable: failed to decrypt DEK.",
		}, hostileKeepsServing),
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

// tryRandom decrypts random bytes. The plugin may answer, which KMS2-HOSTILE-GARBAGE judges, or refuse them with a status.
func tryRandom(ctx context.Context, p *Plugin, s Sealed, what string, size int) error {
	ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
	defer cancel()
	var d delivery
	q := s.request(p)
	q.Ciphertext = p.Bytes(size)
	if _, err := p.Client().Decrypt(ctx, q, d.options()...); err != nil {
		return d.judge(what, err, p.timing.Call)
	}
	return nil
}

func hostileStatus(ctx context.Context, p *Plugin, s Sealed) error {
	return tryRandom(ctx, p, s, "Decrypt of 48 random bytes", 48)
}

// failingCalls is how many refused calls come in a row.
const failingCalls = 200

func hostileKeepsServing(ctx context.Context, p *Plugin, s Sealed) error {
	n, err := repeat(p, failingCalls, p.timing.Load, func(i int) error {
		return tryRandom(ctx, p, s, fmt.Sprintf("Decrypt of random bytes, call %d of %d", i+1, failingCalls), SeedBytes)
	})
	if err != nil {
		return err
	}
	after := fmt.Sprintf(" after %d Decrypts of random bytes", n)
	if err := p.Unseal(ctx, s, "Decrypt of a valid ciphertext"+after); err != nil {
		return err
	}
	return p.roundTrip(ctx, "Decrypt of a new ciphertext"+after)
}
