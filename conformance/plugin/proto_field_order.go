package plugin

import (
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

func protoFieldOrder() Check {
	return hostileCheck(conformance.Check{
		ID:          "KMS2-PROTO-FIELD-ORDER",
		Title:       "fields may come in any order",
		Rule:        "Decrypt with fields and annotations in descending order is served.",
		Source:      sourceProtobuf + ", section Field Order: a parser accepts fields in any order; the entries of a map have no order",
		Consequence: "A kube-apiserver with another protobuf library, or another release of it, cannot read its data.",
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		p.Measure("%d annotations", len(s.Annotations))
		return rawUnseal(ctx, p, "Decrypt with fields in descending order", s, decryptMessage(s.request(p), true))
	})
}
