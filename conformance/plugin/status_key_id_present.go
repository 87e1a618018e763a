package plugin

import (
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func statusKeyIDPresent() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-STATUS-KEY-ID-PRESENT", Profile: conformance.Core,
			Title:       "key_id is not empty",
			Rule:        "Status returns a key_id that is not empty.",
			Source:      sourceProto + ": StatusResponse.key_id; " + sourceEnvelope + ": ValidateKeyID",
			Consequence: "kube-apiserver has no key to encrypt with: keyID is empty (invalid_key_id_from_status_total{error=\"empty\"}).",
		},
		After: []string{StatusAnswers},
		Run: one(func(resp *kmsapi.StatusResponse) error {
			if resp.KeyId == "" {
				return found("Status", resp, "a key_id")
			}
			return nil
		}),
	}
}
