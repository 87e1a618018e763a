package plugin

import (
	"context"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func protoEmpty() Check {
	return hostileCheck(conformance.Check{
		ID:          "KMS2-PROTO-EMPTY",
		Title:       "an empty request decrypts nothing",
		Rule:        "Decrypt with an empty message is an error. Encrypt with an empty message is answered or refused.",
		Source:      sourceDecrypted + "; " + sourceProtobuf + ": all fields of an empty message have their default values",
		Consequence: consequenceWrong,
	}, func(ctx context.Context, p *Plugin, _ Sealed) error {
		if _, err := tryRaw(ctx, p, "Encrypt with an empty message", kmsapi.KeyManagementService_Encrypt_FullMethodName, []byte{}); err != nil {
			return err
		}
		return tryRawDecrypt(ctx, p, "Decrypt with an empty message", []byte{})
	}, hostileEmptyID, hostileNoKeyIDID, hostileUIDID, hostileNoAnnotationsID)
}
