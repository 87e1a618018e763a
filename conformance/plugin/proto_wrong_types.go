package plugin

import (
	"context"

	"google.golang.org/protobuf/encoding/protowire"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func protoWrongTypes() Check {
	return hostileCheck(conformance.Check{
		ID:          "KMS2-PROTO-WRONG-TYPES",
		Title:       "fields of wrong types end nothing",
		Rule:        "A message whose fields have other wire types than those of the API is answered or refused.",
		Source:      sourceProtobuf + ", section Message Structure; " + sourceGRPC,
		Consequence: consequenceEnds,
	}, func(ctx context.Context, p *Plugin, _ Sealed) error {
		numbers := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1<<63)
		numbers = protowire.AppendFixed64(protowire.AppendTag(numbers, 2, protowire.Fixed64Type), 1)
		numbers = protowire.AppendFixed32(protowire.AppendTag(numbers, 3, protowire.Fixed32Type), 1)
		for _, c := range []struct {
			what    string
			message []byte
		}{
			{"with numbers in place of texts", numbers}, {"with a group that does not end", protowire.AppendTag(nil, 1, protowire.StartGroupType)},
			{"with the field number 0", []byte{0x02, 0x00}}, {"with an unknown wire type", []byte{0x0f, 0x01}}, {"with random bytes", p.Bytes(64)},
			{"with an annotation that is no map entry", bytesField(nil, fieldDecryptAnnotations, []byte{0xff})},
		} {
			for _, method := range []string{kmsapi.KeyManagementService_Encrypt_FullMethodName, kmsapi.KeyManagementService_Decrypt_FullMethodName} {
				if _, err := tryRaw(ctx, p, method+" "+c.what, method, c.message); err != nil {
					return err
				}
			}
		}
		return nil
	}, hostileUIDID, hostileNoAnnotationsID)
}
