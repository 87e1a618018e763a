package plugin

import (
	"context"
	"fmt"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func decryptOtherConnection() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-DECRYPT-OTHER-CONNECTION", Profile: conformance.Extended,
			Title:       "Decrypt works over another connection",
			Rule:        "What was encrypted over one connection is decrypted over another, without a Status before.",
			Source:      sourceProto + ": rpc Decrypt needs nothing but its request; " + sourceClient + ": each API server has its own connection and connects again after a failure",
			Consequence: "After a restart of kube-apiserver or a lost connection its data cannot be read: failed to decrypt DEK.",
		},
		After: []string{RoundTrip, SecondConnection},
		Run: func(ctx context.Context, p *Plugin) error {
			s, err := p.Seal(ctx)
			if err != nil {
				return err
			}
			conn, err := p.Dial()
			if err != nil {
				return err
			}
			defer conn.Close()
			ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
			defer cancel()
			const what = "Decrypt over a new connection"
			resp, err := kmsapi.NewKeyManagementServiceClient(conn).Decrypt(ctx, s.request(p))
			if err != nil {
				return found(what, err, "the plaintext that was encrypted")
			}
			if string(resp.Plaintext) != string(s.Plaintext) {
				return found(what, fmt.Sprintf("%d bytes that differ from the plaintext", len(resp.Plaintext)), "the plaintext that was encrypted")
			}
			return nil
		},
	}
}
