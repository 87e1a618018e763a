package plugin

import (
	"context"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func hostileStatus() Check {
	return Check{
		Check: conformance.Check{
			ID: hostileStatusID, Profile: conformance.Robustness,
			Title:       "a refusal is a status",
			Rule:        "A Decrypt that the plugin refuses ends with a gRPC status. The plugin does not break the connection or reset the call.",
			Source:      sourceGRPC + ": the status of a call is sent in its trailers",
			Consequence: "kube-apiserver shows a broken connection (Unavailable) in place of the cause, and its other calls on the connection fail too.",
		},
		After: []string{RoundTrip},
		Run: func(ctx context.Context, p *Plugin) error {
			s, err := p.Seal(ctx)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
			defer cancel()
			var d delivery
			q := &kmsapi.DecryptRequest{Uid: p.UID(), Ciphertext: p.Bytes(48), KeyId: s.KeyId, Annotations: s.Annotations}
			if _, err := p.Client().Decrypt(ctx, q, d.options()...); err != nil { // success is judged by KMS2-HOSTILE-GARBAGE
				return d.judge("Decrypt of 48 random bytes", err, p.timing.Call)
			}
			return nil
		},
	}
}
