package plugin

import (
	"context"
	"fmt"

	"github.com/kmsharness/kmsharness/conformance"
)

func statusSameEverywhere() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-STATUS-SAME-ON-EACH-CONNECTION", Profile: conformance.Extended,
			Title:       "each connection sees one key_id",
			Rule:        "Status returns the same key_id on each connection.",
			Source:      sourceKEP + ": the key_id of Status is authoritative for the plugin",
			Consequence: "After each reconnect kube-apiserver takes the key for rotated, and all stored objects become stale.",
		},
		After: []string{SecondConnection, "KMS2-STATUS-KEY-ID-CONSTANT"},
		Run: func(ctx context.Context, p *Plugin) error {
			first, err := p.Status(ctx)
			if err != nil {
				return found("Status", err, "a response")
			}
			for n := range 5 {
				resp, err := p.statusOnce(ctx)
				if err != nil {
					return found(fmt.Sprintf("Status on a new connection, the %d.", n+1), err, "a response")
				}
				if resp.KeyId != first.KeyId {
					return found(fmt.Sprintf("Status on a new connection, the %d.", n+1), resp, "key_id "+quote(first.KeyId)+" as on the first connection")
				}
			}
			return nil
		},
	}
}
