package plugin

import (
	"context"
	"fmt"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

// Ids of checks on which others depend.
const (
	// EncryptAnswers is the id of the check that Encrypt works at all.
	EncryptAnswers = "KMS2-ENCRYPT-ANSWERS"
	// RoundTrip is the id of the check that Decrypt returns what was encrypted.
	RoundTrip = "KMS2-ENCRYPT-ROUND-TRIP"
)

// Limits of kube-apiserver for what Encrypt returns, in bytes (envelope.go).
const (
	maxCiphertextBytes  = 1024
	maxAnnotationsBytes = 32 << 10
)

// envelope are the checks of Encrypt and Decrypt with valid requests.
func envelope() []Check {
	return []Check{
		{Check: conformance.Check{
			ID: EncryptAnswers, Profile: conformance.Core,
			Title:       "Encrypt answers",
			Rule:        "Encrypt of a seed of 32 bytes returns a response, not an error, within the timeout of a call.",
			Source:      sourceProto + ": rpc Encrypt; " + sourceEnvelope + ": GenerateTransformer encrypts a seed of MinSeedSizeExtendedNonceGCM (32) bytes",
			Consequence: "kube-apiserver has no key to write with: failed to encrypt DEK. Writes of encrypted resources fail.",
		}, After: []string{StatusAnswers}, Run: encryptAnswers},
		{Check: conformance.Check{
			ID: "KMS2-ENCRYPT-CIPHERTEXT-PRESENT", Profile: conformance.Core,
			Title:       "ciphertext is not empty",
			Rule:        "Encrypt returns a ciphertext that is not empty.",
			Source:      sourceProto + ": EncryptResponse.ciphertext, constraint 1; " + sourceEnvelope + ": validateEncryptedDEKSource",
			Consequence: "kube-apiserver discards the answer: encrypted DEK source is empty.",
		}, After: []string{EncryptAnswers}, Run: encryptHas("a ciphertext of 1 to 1024 bytes", func(s Sealed) bool { return len(s.Ciphertext) > 0 })},
		{Check: conformance.Check{
			ID: "KMS2-ENCRYPT-CIPHERTEXT-SIZE", Profile: conformance.Core,
			Title:       "ciphertext has at most 1 KiB",
			Rule:        "The ciphertext of a seed of 32 bytes has at most 1024 bytes.",
			Source:      sourceProto + ": EncryptResponse.ciphertext, constraint 2; " + sourceEnvelope + ": encryptedDEKSourceMaxSize",
			Consequence: "kube-apiserver discards the answer: encrypted DEK source is larger than the max size of 1024.",
		}, After: []string{EncryptAnswers}, Run: withSealed(ciphertextSize)},
		{Check: conformance.Check{
			ID: encryptKeyIDPresentID, Profile: conformance.Core,
			Title:       "Encrypt returns a key_id",
			Rule:        "Encrypt returns a key_id that is not empty.",
			Source:      sourceProto + ": EncryptResponse.key_id, constraint 1; " + sourceEnvelope + ": ValidateKeyID",
			Consequence: "kube-apiserver discards the answer: failed to validate key id: keyID is empty.",
		}, After: []string{EncryptAnswers}, Run: encryptHas("the key_id of Status", func(s Sealed) bool { return s.KeyId != "" })},
		{Check: conformance.Check{
			ID: encryptKeyIDSizeID, Profile: conformance.Core,
			Title:       "Encrypt's key_id has at most 1 KiB",
			Rule:        "The key_id that Encrypt returns has at most 1024 bytes.",
			Source:      sourceProto + ": EncryptResponse.key_id, constraint 2; " + sourceEnvelope + ": KeyIDMaxSize",
			Consequence: "kube-apiserver discards the answer: failed to validate key id: keyID exceeds the max size of 1024.",
		}, After: []string{"KMS2-STATUS-KEY-ID-SIZE", encryptKeyIDPresentID}, Run: encryptHas("a key_id of 1 to 1024 bytes", func(s Sealed) bool { return len(s.KeyId) <= maxKeyID })},
		{Check: conformance.Check{
			ID: EncryptKeyIDEqualsStatus, Profile: conformance.Core,
			Title:       "Encrypt's key_id is that of Status",
			Rule:        "Encrypt returns the key_id that Status returns.",
			Source:      sourceKEP + ", section key_id and rotation: the key_id of Status is authoritative; " + sourceConfig + ": rotateDEKOnKeyIDChange",
			Consequence: "kube-apiserver discards the answer and reports the provider as unhealthy: failed to rotate DEK. It never gets a key to write with.",
		}, After: []string{"KMS2-STATUS-KEY-ID-PRESENT", encryptKeyIDPresentID, encryptKeyIDSizeID}, Run: withStatus(encryptKeyIDEqualsStatus)},
		{Check: conformance.Check{
			ID: "KMS2-ENCRYPT-ANNOTATION-KEYS", Profile: conformance.Core,
			Title:       "annotation keys are domain names",
			Rule:        "The key of each annotation is a fully qualified domain name: at least two labels, as RFC 1123 defines them, in lower case.",
			Source:      sourceProto + ": EncryptResponse.annotations, constraint 1; " + sourceEnvelope + ": validateAnnotations calls IsFullyQualifiedDomainName",
			Consequence: "kube-apiserver discards the answer: failed to validate annotations.",
		}, After: []string{EncryptAnswers}, Run: withSealed(annotationKeys)},
		{Check: conformance.Check{
			ID: "KMS2-ENCRYPT-ANNOTATION-SIZE", Profile: conformance.Core,
			Title:       "annotations have at most 32 KiB",
			Rule:        "Keys and values of all annotations together have at most 32768 bytes.",
			Source:      sourceProto + ": EncryptResponse.annotations, constraint 2; " + sourceEnvelope + ": annotationsMaxSize",
			Consequence: "kube-apiserver discards the answer: failed to validate annotations: total size of annotations exceeds the max size of 32768.",
		}, After: []string{EncryptAnswers}, Run: withSealed(annotationSize)},
		{Check: conformance.Check{
			ID: RoundTrip, Profile: conformance.Core,
			Title:       "Decrypt returns what was encrypted",
			Rule:        "Decrypt with the ciphertext, key_id and annotations of an Encrypt, and a uid of its own, returns the 32 bytes that were encrypted.",
			Source:      sourceKEP + ", section key_id and rotation: DecryptRequest passes the key_id and annotations of EncryptResponse; " + sourceEnvelope + ": TransformFromStorage makes a new uid",
			Consequence: "kube-apiserver cannot read what it wrote after a restart: failed to decrypt DEK. The data is lost.",
		}, After: []string{EncryptAnswers}, Run: envelopeRoundTrip},
		{Check: conformance.Check{
			ID: envelopeEdgeBytesID, Profile: conformance.Core,
			Title:       "any byte may begin and end a seed",
			Rule:        "A seed of 32 bytes that begins or ends with zeros, white space or bytes that look like padding is decrypted to the same 32 bytes.",
			Source:      sourceProto + ": EncryptRequest.plaintext is bytes; " + sourceEnvelope + ": GenerateTransformer encrypts random bytes",
			Consequence: "Some seeds of kube-apiserver cannot be restored. What was written with such a seed is lost.",
		}, After: []string{RoundTrip}, Run: envelopeEdgeBytes},
		{Check: conformance.Check{
			ID: "KMS2-ENCRYPT-DISTINCT", Profile: conformance.Extended,
			Title:       "different plaintexts, different ciphertexts",
			Rule:        "Plaintexts that differ, if only in one bit, get answers that differ in the ciphertext or in the annotations.",
			Source:      sourceEnvelope + ": generateCacheKey identifies a seed by ciphertext, key_id and annotations",
			Consequence: "kube-apiserver takes one seed for another. What was written with the other cannot be read.",
		}, After: []string{RoundTrip}, Run: envelopeDistinct},
		{Check: conformance.Check{
			ID: ciphertextHidesID, Profile: conformance.Core,
			Title:       "ciphertext hides the plaintext",
			Rule:        "The ciphertext contains no part of the plaintext, as it is or in a usual encoding.",
			Source:      sourceProto + ": EncryptResponse.ciphertext is the encrypted data",
			Consequence: "kube-apiserver stores its seed in clear beside the data that the seed encrypts. A reader of etcd can decrypt the data.",
		}, After: []string{EncryptAnswers}, Run: withSealed(ciphertextHides)},
		{Check: conformance.Check{
			ID: "KMS2-ENCRYPT-CIPHERTEXT-KEYSTREAM", Profile: conformance.Extended,
			Title:       "no two ciphertexts share a key stream",
			Rule:        "The difference of two ciphertexts does not show the difference of the plaintexts: nonces are not used twice.",
			Source:      sourceProto + ": EncryptResponse.ciphertext is the encrypted data; NIST SP 800-38D, section 8: a nonce is used once for each key",
			Consequence: "A reader of etcd that knows one seed of kube-apiserver can compute the others.",
		}, After: []string{RoundTrip, ciphertextHidesID}, Run: ciphertextKeystream},
		{Check: conformance.Check{
			ID: "KMS2-ENCRYPT-ANNOTATIONS-HIDE", Profile: conformance.Extended,
			Title:       "annotations hide the plaintext",
			Rule:        "No annotation contains a part of the plaintext, as it is or in a usual encoding.",
			Source:      sourceProto + ": EncryptResponse.annotations are stored in plaintext in etcd, the plugin encrypts what is sensitive",
			Consequence: "kube-apiserver stores its seed in clear beside the data that the seed encrypts. A reader of etcd can decrypt the data.",
		}, After: []string{RoundTrip}, Run: withSealed(annotationsHide)},
		{Check: conformance.Check{
			ID: "KMS2-ENCRYPT-KEY-ID-STABLE", Profile: conformance.Extended,
			Title:       "Encrypt's key_id is stable",
			Rule:        "While Status returns one key_id, every Encrypt returns it.",
			Source:      sourceKEP + ", section key_id and rotation: the key_id is stable and does not flip-flop between values",
			Consequence: "kube-apiserver discards some answers and reports the provider as unhealthy now and then: failed to rotate DEK.",
		}, After: []string{EncryptKeyIDEqualsStatus}, Run: withStatus(encryptKeyIDStable)},
		{Check: conformance.Check{
			ID: "KMS2-ENCRYPT-SAME-PLAINTEXT", Profile: conformance.Extended,
			Title:       "one plaintext can be encrypted twice",
			Rule:        "Each of several answers for the same plaintext is decrypted to it. They may be equal or not.",
			Source:      sourceProto + ": rpc Encrypt, rpc Decrypt; " + sourceClient + ": Encrypt is called again after a failure",
			Consequence: "kube-apiserver cannot read what it wrote: failed to decrypt DEK.",
		}, After: []string{RoundTrip}, Run: envelopeSamePlaintext},
		{Check: conformance.Check{
			ID: "KMS2-DECRYPT-REPEATED", Profile: conformance.Extended,
			Title:       "Decrypt can be repeated",
			Rule:        "Each Decrypt of one ciphertext returns the plaintext, however often it was decrypted before.",
			Source:      sourceProto + ": rpc Decrypt; " + sourceEnvelope + ": TransformFromStorage calls Decrypt whenever its cache has no such seed",
			Consequence: "kube-apiserver reads the data until its next restart, and never again: failed to decrypt DEK.",
		}, After: []string{RoundTrip}, Run: withSealed(decryptRepeated)},
		{Check: conformance.Check{
			ID: DecryptAnyOrder, Profile: conformance.Extended,
			Title:       "the order of Decrypts is free",
			Rule:        "100 ciphertexts are decrypted in the reverse of the order in which they were made.",
			Source:      sourceProto + ": rpc Decrypt; " + sourceEnvelope + ": TransformFromStorage calls Decrypt in the order in which objects are read",
			Consequence: "kube-apiserver can read some objects only if it reads them before others: failed to decrypt DEK.",
		}, After: []string{RoundTrip}, Run: decryptAnyOrder},
		{Check: conformance.Check{
			ID: "KMS2-DECRYPT-OTHER-CONNECTION", Profile: conformance.Extended,
			Title:       "Decrypt works over another connection",
			Rule:        "What was encrypted over one connection is decrypted over another, without a Status before.",
			Source:      sourceProto + ": rpc Decrypt needs nothing but its request; " + sourceClient + ": each API server has its own connection and connects again after a failure",
			Consequence: "After a restart of kube-apiserver or a lost connection its data cannot be read: failed to decrypt DEK.",
		}, After: []string{RoundTrip, SecondConnection}, Run: withSealed(decryptOtherConnection)},
		{Check: conformance.Check{
			ID: "KMS2-DECRYPT-LATER", Profile: conformance.Extended,
			Title:       "Decrypt works after many Encrypts",
			Rule:        "A ciphertext is decrypted after 200 further Encrypts.",
			Source:      sourceProto + ": rpc Decrypt needs nothing but its request; " + sourceEnvelope + ": the seed of each start and each rotation stays in use until its data is rewritten",
			Consequence: "kube-apiserver can read only what was written recently: failed to decrypt DEK. Older data is lost.",
		}, After: []string{RoundTrip}, Run: withSealed(decryptLater)},
		{Check: conformance.Check{
			ID: "KMS2-DECRYPT-AFTER-STATUS", Profile: conformance.Extended,
			Title:       "Status does not invalidate a ciphertext",
			Rule:        "A ciphertext is decrypted after further calls of Status.",
			Source:      sourceProto + ": rpc Status is meant to be polled; rpc Decrypt",
			Consequence: "kube-apiserver polls Status once a minute, and its data cannot be read afterwards: failed to decrypt DEK.",
		}, After: []string{RoundTrip}, Run: withSealed(decryptAfterStatus)},
		{Check: conformance.Check{
			ID: "KMS2-ENCRYPT-UID-REUSED", Profile: conformance.Robustness,
			Title:       "uid does not identify an answer",
			Rule:        "A request with a uid that another request had is refused or answered by its own content, never with the answer of the other request.",
			Source:      sourceProto + ": EncryptRequest.uid identifies the request; " + sourceKEP + ", section Observability: the uid is for logs and correlation",
			Consequence: "A caller that repeats a uid gets the ciphertext or the plaintext of another operation.",
		}, After: []string{RoundTrip}, Run: envelopeUIDReused},
		{Check: conformance.Check{
			ID: "KMS2-ENCRYPT-UNIFORM-BYTES", Profile: conformance.Robustness,
			Title:       "32 equal bytes are a plaintext",
			Rule:        "32 bytes 0x00 and 32 bytes 0xFF are decrypted to the same bytes, or Encrypt refuses them.",
			Source:      sourceProto + ": EncryptRequest.plaintext is bytes of any value",
			Consequence: "None today: kube-apiserver encrypts random bytes.",
		}, After: []string{envelopeEdgeBytesID}, Run: envelopeUniformBytes},
		{Check: conformance.Check{
			ID: "KMS2-ENCRYPT-TEXT-BYTES", Profile: conformance.Robustness,
			Title:       "a plaintext is not interpreted",
			Rule:        "32 bytes that look like base64, hexadecimal digits, JSON, PEM or a ciphertext are decrypted to the same bytes, or Encrypt refuses them.",
			Source:      sourceProto + ": EncryptRequest.plaintext is bytes without a format",
			Consequence: "None today: kube-apiserver encrypts random bytes, which have no format.",
		}, After: []string{RoundTrip}, Run: envelopeTextBytes},
		{Check: conformance.Check{
			ID: "KMS2-ENCRYPT-PLAINTEXT-EMPTY", Profile: conformance.Robustness,
			Title:       "empty plaintext is kept or refused",
			Rule:        "An empty plaintext is decrypted to an empty plaintext, or Encrypt refuses it.",
			Source:      sourceProto + ": EncryptRequest.plaintext has no minimal length",
			Consequence: "None today: kube-apiserver encrypts 32 bytes.",
		}, After: []string{RoundTrip}, Run: plaintextEmpty},
		plaintextSizes("KMS2-ENCRYPT-PLAINTEXT-SMALL", "small plaintexts are kept or refused", RoundTrip, 1, 15, 16, 17, 31),
		plaintextSizes(plaintextLargeID, "larger plaintexts are kept or refused", RoundTrip, 33, 48, 64, 255, 256),
		plaintextSizes(plaintextGrowingID, "plaintexts of up to 64 KiB are kept or refused", plaintextLargeID, 512, 1<<10, 4<<10, 16<<10, 64<<10),
	}
}

// encryptHas judges a single answer of Encrypt.
func encryptHas(expected string, ok func(Sealed) bool) func(context.Context, *Plugin) error {
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
		if err := p.roundTrip(ctx, "Decrypt with what Encrypt returned"); err != nil {
			return err
		}
	}
	return nil
}

func envelopeUIDReused(ctx context.Context, p *Plugin) error {
	uid := p.UID()
	var all []Sealed
	for _, what := range []string{"Encrypt with a new uid", "Encrypt of another plaintext with the same uid"} {
		plaintext := p.Bytes(SeedBytes)
		resp, err := tryEncrypt(ctx, p, what, &kmsapi.EncryptRequest{Uid: uid, Plaintext: plaintext})
		if err != nil {
			return err
		}
		if resp != nil {
			all = append(all, Sealed{plaintext, resp})
		}
	}
	if err := p.unsealAll(ctx, all, "Decrypt of a ciphertext whose uid another request had too"); err != nil {
		return err
	}
	uid = p.UID()
	return each(all, func(s Sealed) error {
		return tryAltered(ctx, p, s, "Decrypt of several ciphertexts with the same uid", func(q *kmsapi.DecryptRequest) { q.Uid = uid })
	})
}
