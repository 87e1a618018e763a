package plugin

import (
	"context"
	"fmt"
	"time"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

// StatusAnswers is the id of the check on which all checks of calls depend.
const StatusAnswers = "KMS2-STATUS-ANSWERS"

func statusChecks() []Check {
	return []Check{
		statusAnswers(), statusHealthy(), statusHealthyAlways(), statusVersion(), statusVersionConstant(),
		statusKeyIDPresent(), statusKeyIDSize(), statusKeyIDConstant(), statusKeyIDStable(), statusKeyIDPrintable(),
	}
}

// manyCalls is how often a check calls Status where one call would show too little.
const manyCalls = 50

// eachStatus calls Status so often and stops at the first error of the plugin or of judge.
func eachStatus(ctx context.Context, p *Plugin, calls int, judge func(n int, resp *kmsapi.StatusResponse) error) error {
	for n := range calls {
		resp, err := p.Status(ctx)
		if err != nil {
			return found(fmt.Sprintf("Status, call %d", n+1), err, "a response")
		}
		if err := judge(n, resp); err != nil {
			return err
		}
	}
	return nil
}

// one judges a single answer of Status.
func one(judge func(*kmsapi.StatusResponse) error) func(context.Context, *Plugin) error {
	return func(ctx context.Context, p *Plugin) error {
		return eachStatus(ctx, p, 1, func(_ int, resp *kmsapi.StatusResponse) error { return judge(resp) })
	}
}

// constant calls Status manyCalls times and compares one field of the answers.
func constant(name string, field func(*kmsapi.StatusResponse) string) func(context.Context, *Plugin) error {
	return func(ctx context.Context, p *Plugin) error {
		var first string
		return eachStatus(ctx, p, manyCalls, func(n int, resp *kmsapi.StatusResponse) error {
			if n == 0 {
				first = field(resp)
			}
			if got := field(resp); got != first {
				return found(fmt.Sprintf("Status, call %d", n+1), resp, fmt.Sprintf("%s %s as in the first call", name, quote(first)))
			}
			return nil
		})
	}
}

// pollInterval is the time between two calls where a check waits for a change.
const pollInterval = 50 * time.Millisecond

// maxKeyID is the longest key_id that kube-apiserver accepts, in bytes.
const maxKeyID = 1024

// statusOnce calls Status over a connection of its own.
func (p *Plugin) statusOnce(ctx context.Context) (*kmsapi.StatusResponse, error) {
	conn, err := p.Dial()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
	defer cancel()
	return kmsapi.NewKeyManagementServiceClient(conn).Status(ctx, &kmsapi.StatusRequest{})
}

func statusAnswers() Check {
	return Check{
		Check: conformance.Check{
			ID: StatusAnswers, Profile: conformance.Core,
			Title:       "Status answers",
			Rule:        "Status returns a response, not an error, within the timeout of a call.",
			Source:      sourceProto + ": rpc Status; " + sourceConfig + ": the timeout of a provider, by default 3 s",
			Consequence: "kube-apiserver never gets a key_id and reports the provider as unhealthy (/readyz: failed to perform status section of the healthz check).",
		},
		After: []string{Connects},
		Run: func(ctx context.Context, p *Plugin) error {
			if _, err := p.Status(ctx); err != nil {
				return found("Status", err, "a response within "+p.timing.Call.String())
			}
			return nil
		},
	}
}

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
