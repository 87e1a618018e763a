package plugin

import (
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func statusHealthy() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-STATUS-HEALTHZ-OK", Profile: conformance.Core,
			Title:       "healthz is ok",
			Rule:        "A healthy plugin returns healthz \"ok\", in these two bytes.",
			Source:      sourceProto + ": StatusResponse.healthz; " + sourceConfig + ": isKMSv2ProviderHealthyAndMaybeRotateDEK compares with \"ok\"",
			Consequence: "kube-apiserver reports the provider as unhealthy: got unexpected healthz status.",
		},
		After: []string{StatusAnswers},
		Run: one(func(resp *kmsapi.StatusResponse) error {
			if resp.Healthz != "ok" {
				return found("Status", resp, `healthz "ok"`)
			}
			return nil
		}),
	}
}
