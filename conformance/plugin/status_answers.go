package plugin

import (
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

func statusAnswers() Check {
	return Check{
		Check: conformance.Check{
			ID: StatusAnswers, Profile: conformance.Core,
			Title:       "Status answers",
			Rule:        "Status returns a response, not an error, within the timeout of a call.",
			Source:      sourceProto + ": rpc Status; " + sourceConfig + ": the timeout of a provider, by default 3 s",
			Consequence: "kube-apiserver never gets a key_id and reports the provider as unhealthy (/readyz: failed to perform status section of the healthz check).",
		},
		After: []string{Connects},
		Run: func(ctx context.Context, p *Plugin) error {
			if _, err := p.Status(ctx); err != nil {
				return found("Status", err, "a response within "+p.timing.Call.String())
			}
			return nil
		},
	}
}
