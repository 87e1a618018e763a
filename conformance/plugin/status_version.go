package plugin

import (
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func statusVersion() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-STATUS-VERSION", Profile: conformance.Core,
			Title:       "version is v2 or v2beta1",
			Rule:        "Status returns the version \"v2\" or \"v2beta1\".",
			Source:      sourceProto + ": StatusResponse.version; " + sourceConfig + ": isKMSv2ProviderHealthyAndMaybeRotateDEK",
			Consequence: "kube-apiserver reports the provider as unhealthy: expected KMSv2 API version v2, got another.",
		},
		After: []string{StatusAnswers},
		Run: one(func(resp *kmsapi.StatusResponse) error {
			if resp.Version != "v2" && resp.Version != "v2beta1" {
				return found("Status", resp, `version "v2" or "v2beta1"`)
			}
			return nil
		}),
	}
}
