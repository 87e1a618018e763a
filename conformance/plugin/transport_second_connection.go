package plugin

import (
	"context"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

// SecondConnection is the id of the check on which all checks that open connections depend.
const SecondConnection = "KMS2-TRANSPORT-SECOND-CONNECTION"

func secondConnection() Check {
	return Check{
		Check: conformance.Check{
			ID: SecondConnection, Profile: conformance.Extended,
			Title:       "several connections at once",
			Rule:        "The plugin serves a further connection while others are open.",
			Source:      sourceConfig + ": kmsPrefixTransformer opens a connection for each configuration, and a reload closes the old ones only after a grace period",
			Consequence: "A reload of the EncryptionConfiguration fails, because the new configuration never becomes healthy, and the old one stays in use.",
		},
		After: []string{StatusAnswers},
		Run: func(ctx context.Context, p *Plugin) error {
			first, endFirst, err := newClient(p)
			if err != nil {
				return err
			}
			defer endFirst()
			second, endSecond, err := newClient(p)
			if err != nil {
				return err
			}
			defer endSecond()
			for _, c := range []struct {
				name   string
				client kmsapi.KeyManagementServiceClient
			}{{"the first", first}, {"a second", second}, {"the first", first}} {
				if err := statusOf(ctx, p, c.client); err != nil {
					return found("Status on "+c.name+" of two further connections", err, "a response")
				}
			}
			return nil
		},
	}
}
