package plugin

import (
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

func encryptAnswers() Check {
	return Check{
		Check: conformance.Check{
			ID: EncryptAnswers, Profile: conformance.Core,
			Title:       "Encrypt answers",
			Rule:        "Encrypt of a seed of 32 bytes returns a response, not an error, within the timeout of a call.",
			Source:      sourceProto + ": rpc Encrypt; " + sourceEnvelope + ": GenerateTransformer encrypts a seed of MinSeedSizeExtendedNonceGCM (32) bytes",
			Consequence: "kube-apiserver has no key to write with: failed to encrypt DEK. Writes of encrypted resources fail.",
		},
		After: []string{StatusAnswers},
		Run: func(ctx context.Context, p *Plugin) error {
			_, err := p.Seal(ctx)
			return err
		},
	}
}
