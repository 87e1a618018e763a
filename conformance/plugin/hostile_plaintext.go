package plugin

import (
	"context"
	"fmt"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

// grpcLimitBytes is the size of the messages that gRPC servers accept by default.
const grpcLimitBytes = 4 << 20

func hostilePlaintextHuge() Check {
	return hostileCheck(conformance.Check{
		ID:          "KMS2-HOSTILE-PLAINTEXT-HUGE",
		Title:       "a huge plaintext is kept or refused",
		Rule:        "A plaintext of 1 MiB, or of almost 4 MiB, is decrypted to the same bytes, or Encrypt refuses it.",
		Source:      sourceProto + ": EncryptRequest.plaintext has no fixed length",
		Consequence: consequenceEnds,
	}, func(ctx context.Context, p *Plugin, _ Sealed) error {
		for _, size := range []int{1 << 20, grpcLimitBytes - 1<<10} {
			refused, err := mayRoundTrip(ctx, p, p.Bytes(size), fmt.Sprintf("%d bytes", size))
			if err != nil {
				return err
			}
			if refused {
				p.Measure("%d bytes are refused", size)
			}
		}
		return nil
	}, plaintextGrowingID)
}

func hostileMessageOversized() Check {
	return hostileCheck(conformance.Check{
		ID:          "KMS2-HOSTILE-MESSAGE-OVERSIZED",
		Title:       "a message over gRPC's limit ends nothing",
		Rule:        "After an Encrypt of 5 MiB, which is more than gRPC servers accept by default, the plugin serves the next call.",
		Source:      "grpc.io/docs: a message over the limit is refused with RESOURCE_EXHAUSTED; " + sourceProto + ": EncryptRequest.plaintext has no fixed length",
		Consequence: consequenceEnds,
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
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
	})
}
