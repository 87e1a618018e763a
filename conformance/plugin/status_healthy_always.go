package plugin

import (
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func statusHealthyAlways() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-STATUS-HEALTHZ-CONSTANT", Profile: conformance.Extended,
			Title:       "healthz does not flap",
			Rule:        "A healthy plugin returns healthz \"ok\" in each of 50 calls of Status.",
			Source:      sourceProto + ": StatusResponse.healthz; " + sourceConfig + ": a bad answer is cached for 3 s, a good one for 20 s",
			Consequence: "/readyz of kube-apiserver fails for some seconds now and then, and load balancers take the API server out of service.",
		},
		After: []string{StatusAnswers, "KMS2-STATUS-HEALTHZ-OK"},
		Run:   constant("healthz", (*kmsapi.StatusResponse).GetHealthz),
	}
}
