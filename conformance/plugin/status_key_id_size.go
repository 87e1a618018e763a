package plugin

import (
	"fmt"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func statusKeyIDSize() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-STATUS-KEY-ID-SIZE", Profile: conformance.Core,
			Title:       "key_id has at most 1024 bytes",
			Rule:        "Status returns a key_id of at most 1024 bytes.",
			Source:      sourceProto + ": key_id must be less than 1 kB; " + sourceEnvelope + ": keyIDMaxSize",
			Consequence: "kube-apiserver discards the answer: keyID is N bytes, which exceeds the max size of 1024.",
		},
		After: []string{StatusAnswers},
		Run: one(func(resp *kmsapi.StatusResponse) error {
			if len(resp.KeyId) > maxKeyID {
				return found("Status", fmt.Sprintf("a key_id of %d bytes", len(resp.KeyId)), fmt.Sprintf("at most %d bytes", maxKeyID))
			}
			return nil
		}),
	}
}
