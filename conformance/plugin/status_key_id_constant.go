package plugin

import (
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func statusKeyIDConstant() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-STATUS-KEY-ID-CONSTANT", Profile: conformance.Core,
			Title:       "key_id does not flip",
			Rule:        "Status returns the same key_id in each of 50 calls while nobody rotates the key.",
			Source:      sourceKEP + ": the key_id must be stable and must not flip-flop; " + sourceProto + ": StatusResponse.key_id",
			Consequence: "kube-apiserver makes a new data encryption key at each change, and all stored objects become stale.",
		},
		After: []string{StatusAnswers, "KMS2-STATUS-KEY-ID-PRESENT"},
		Run:   constant("key_id", (*kmsapi.StatusResponse).GetKeyId),
	}
}
