package plugin

import (
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func statusVersionConstant() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-STATUS-VERSION-CONSTANT", Profile: conformance.Core,
			Title:       "version does not change",
			Rule:        "Status returns the same version in each of 50 calls.",
			Source:      sourceConfig + ": KMSv2 API version should not change after the initial status response",
			Consequence: "kube-apiserver reports the provider as unhealthy: KMSv2 API version should not change after the initial status response.",
		},
		After: []string{StatusAnswers, "KMS2-STATUS-VERSION"},
		Run:   constant("version", (*kmsapi.StatusResponse).GetVersion),
	}
}
