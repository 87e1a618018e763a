package plugin

// Ids of checks on which others depend.
const (
	// EncryptAnswers is the id of the check that Encrypt works at all.
	EncryptAnswers = "KMS2-ENCRYPT-ANSWERS"
	// RoundTrip is the id of the check that Decrypt returns what was encrypted.
	RoundTrip = "KMS2-ENCRYPT-ROUND-TRIP"
)

// Limits of kube-apiserver for what Encrypt returns, in bytes (envelope.go).
const (
	maxCiphertextBytes   = 1024
	maxEncryptKeyIDBytes = 1024
	maxAnnotationsBytes  = 32 << 10
)

// envelope are the checks of Encrypt and Decrypt with valid requests.
func envelope() []Check {
	return []Check{
		encryptAnswers(), ciphertextPresent(), ciphertextSize(), encryptKeyIDPresent(), encryptKeyIDSize(), encryptKeyIDEqualsStatus(),
		annotationKeys(), annotationSize(), envelopeRoundTrip(), envelopeEdgeBytes(),
		envelopeDistinct(), ciphertextHides(), ciphertextKeystream(), annotationsHide(), encryptKeyIDStable(),
		envelopeSamePlaintext(), decryptRepeated(), decryptAnyOrder(), decryptOtherConnection(), decryptLater(), decryptAfterStatus(),
		envelopeUIDReused(), envelopeUniformBytes(), envelopeTextBytes(),
		plaintextEmpty(), plaintextSmall(), plaintextLarge(), plaintextGrowing(),
	}
}
