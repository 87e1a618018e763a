package plugin

import (
	"context"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

const dataKept = "KMS2-LIFECYCLE-DATA-AFTER-SIGTERM"

func dataAfterStop() Check {
	return dataAfter(dataKept, "SIGTERM", []string{stopRestart, inARow, waits}, terminate)
}

func dataAfterKill() Check {
	return dataAfter("KMS2-LIFECYCLE-DATA-AFTER-SIGKILL", "SIGKILL", []string{dataKept, killRestart}, func(p *Plugin) func(context.Context) error { return p.Kill })
}

func dataAfter(id, signal string, after []string, end func(*Plugin) func(context.Context) error) Check {
	return Check{
		Check: conformance.Check{
			ID: id, Profile: conformance.Extended,
			Title:       "decrypts after " + signal,
			Rule:        "After " + signal + " and a start, the plugin decrypts what it encrypted before.",
			Source:      sourceKEP + ", Metadata: Decrypt gets what Encrypt returned, and \"no state coordination is required between different instances of the KMS plugin\"",
			Consequence: "All data that was encrypted before the restart is lost.",
			Needs:       []conformance.Capability{Command},
		},
		After: after,
		Run: func(ctx context.Context, p *Plugin) error {
			sealed, err := p.Seal(ctx)
			if err != nil {
				return err
			}
			if err := restart(ctx, p, signal, end(p)); err != nil {
				return err
			}
			return unsealWhenReady(ctx, p, sealed, "Decrypt, after "+signal+" and a start, of what was encrypted before")
		},
	}
}

func keyIDAfterRestart() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-LIFECYCLE-KEY-ID-AFTER-RESTART", Profile: conformance.Extended,
			Title:       "key_id survives a restart",
			Rule:        "The plugin has the same key_id before and after a restart, if the KEK has not been rotated.",
			Source:      sourceProto + ": EncryptResponse.key_id \"must always refer to the KMS KEK and not any local KEKs\"; " + sourceKEP + ", Proposal: key_id is a stable identifier, changed to trigger key rotation",
			Consequence: "Each restart of the plugin makes kube-apiserver rotate its DEK, and makes all encrypted objects stale.",
			Needs:       []conformance.Capability{Command},
		},
		After: []string{stopRestart},
		Run: func(ctx context.Context, p *Plugin) error {
			before, err := p.Status(ctx)
			if err != nil {
				return found("Status before a restart", err, "a response")
			}
			if err := restart(ctx, p, "SIGTERM", terminate(p)); err != nil {
				return err
			}
			var after *kmsapi.StatusResponse
			p.Poll(ctx, retry, p.timing.Start, func(ctx context.Context) bool { // the KMS may need time after a start
				after, err = p.Status(ctx)
				return err == nil && after.KeyId != ""
			})
			if err != nil {
				return found("Status after a restart", err, "a response")
			}
			if after.KeyId != before.KeyId {
				return found("Status after a restart", after, "key_id "+quote(before.KeyId)+", as before")
			}
			return nil
		},
	}
}
