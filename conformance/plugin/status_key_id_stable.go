package plugin

import (
	"context"
	"fmt"

	"github.com/kmsharness/kmsharness/conformance"
)

// keyIDStable is the id of the check without whose success a changed key_id shows nothing about a rotation or a failure.
const keyIDStable = "KMS2-STATUS-KEY-ID-STABLE"

func statusKeyIDStable() Check {
	return Check{
		Check: conformance.Check{
			ID: keyIDStable, Profile: conformance.Extended,
			Title:       "key_id is stable over time",
			Rule:        "Status returns the same key_id over a period of watching while nobody rotates the key.",
			Source:      sourceKEP + ": the key_id must be stable and must not flip-flop",
			Consequence: "kube-apiserver makes a new data encryption key at each change, and all stored objects become stale.",
		},
		After: []string{StatusAnswers, "KMS2-STATUS-KEY-ID-CONSTANT"},
		Waits: true,
		Run: func(ctx context.Context, p *Plugin) error {
			first, err := p.Status(ctx)
			if err != nil {
				return found("Status", err, "a response")
			}
			_, changed := p.Poll(ctx, pollInterval, p.timing.Watch, func(ctx context.Context) bool {
				resp, callErr := p.Status(ctx)
				switch {
				case callErr != nil:
					err = found("Status", callErr, "a response")
				case resp.KeyId != first.KeyId:
					err = found("Status", resp, fmt.Sprintf("key_id %s for %v", quote(first.KeyId), p.timing.Watch))
				}
				return err != nil
			})
			if changed {
				return err
			}
			return nil
		},
	}
}
