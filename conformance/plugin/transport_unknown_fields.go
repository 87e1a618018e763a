package plugin

import (
	"bytes"
	"context"

	"google.golang.org/protobuf/encoding/protowire"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func unknownFields() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-UNKNOWN-FIELDS", Profile: conformance.Extended,
			Title:       "unknown fields are ignored",
			Rule:        "Status answers a request with fields that the plugin does not know.",
			Source:      "protobuf.dev/programming-guides/proto3: unknown fields are well formed, and a parser accepts them; " + sourceProto,
			Consequence: "A kube-apiserver whose API has one more field cannot use the plugin.",
		},
		After: []string{StatusAnswers},
		Run: func(ctx context.Context, p *Plugin) error {
			ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
			defer cancel()
			if _, err := p.Raw(ctx, kmsapi.KeyManagementService_Status_FullMethodName, unknownField(16)); err != nil {
				return found("Status with an unknown field of 16 bytes", err, "a response")
			}
			return nil
		},
	}
}

// unknownField is a message with one field that no KMS v2 message has.
func unknownField(size int) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, 2000, protowire.BytesType), bytes.Repeat([]byte{'x'}, size))
}
