package plugin

import (
	"strings"
	"unicode"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func statusKeyIDPrintable() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-STATUS-KEY-ID-PRINTABLE", Profile: conformance.Extended,
			Title:       "key_id is printable text",
			Rule:        "The key_id has no control characters and no white space around it.",
			Source:      sourceProto + ": StatusResponse.key_id is a string that is public and may be stored and logged in clear text; " + sourceKEP,
			Consequence: "Tools that compare, log or store the key_id of several nodes break lines or report equal keys as different.",
		},
		After: []string{StatusAnswers, "KMS2-STATUS-KEY-ID-PRESENT"},
		Run: one(func(resp *kmsapi.StatusResponse) error {
			if strings.TrimSpace(resp.KeyId) != resp.KeyId || strings.ContainsFunc(resp.KeyId, unicode.IsControl) {
				return found("Status", resp, "a key_id without control characters and without white space around it")
			}
			return nil
		}),
	}
}
