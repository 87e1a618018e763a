package plugin

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

// StatusAnswers is the id of the check on which all checks of calls depend.
const StatusAnswers = "KMS2-STATUS-ANSWERS"

func statusChecks() []Check {
	return []Check{
		{Check: conformance.Check{
			ID: StatusAnswers, Profile: conformance.Core,
			Title:       "Status answers",
			Rule:        "Status returns a response, not an error, within the timeout of a call.",
			Source:      sourceProto + ": rpc Status; " + sourceConfig + ": the timeout of a provider, by default 3 s",
			Consequence: "kube-apiserver never gets a key_id and reports the provider as unhealthy (/readyz: failed to perform status section of the healthz check).",
		}, After: []string{Connects}, Run: statusAnswers},
		{Check: conformance.Check{
			ID: "KMS2-STATUS-HEALTHZ-OK", Profile: conformance.Core,
			Title:       "healthz is ok",
			Rule:        "A healthy plugin returns healthz \"ok\", in these two bytes.",
			Source:      sourceProto + ": StatusResponse.healthz; " + sourceConfig + ": isKMSv2ProviderHealthyAndMaybeRotateDEK compares with \"ok\"",
			Consequence: "kube-apiserver reports the provider as unhealthy: got unexpected healthz status.",
		}, After: []string{StatusAnswers}, Run: statusHas(`healthz "ok"`, func(r *kmsapi.StatusResponse) bool { return r.Healthz == "ok" })},
		{Check: conformance.Check{
			ID: "KMS2-STATUS-HEALTHZ-CONSTANT", Profile: conformance.Extended,
			Title:       "healthz does not flap",
			Rule:        "A healthy plugin returns healthz \"ok\" in each of 50 calls of Status.",
			Source:      sourceProto + ": StatusResponse.healthz; " + sourceConfig + ": a bad answer is cached for 3 s, a good one for 20 s",
			Consequence: "/readyz of kube-apiserver fails for some seconds now and then, and load balancers take the API server out of service.",
		}, After: []string{StatusAnswers, "KMS2-STATUS-HEALTHZ-OK"}, Run: constant("healthz", (*kmsapi.StatusResponse).GetHealthz)},
		{Check: conformance.Check{
			ID: "KMS2-STATUS-VERSION", Profile: conformance.Core,
			Title:       "version is v2 or v2beta1",
			Rule:        "Status returns the version \"v2\" or \"v2beta1\".",
			Source:      sourceProto + ": StatusResponse.version; " + sourceConfig + ": isKMSv2ProviderHealthyAndMaybeRotateDEK",
			Consequence: "kube-apiserver reports the provider as unhealthy: expected KMSv2 API version v2, got another.",
		}, After: []string{StatusAnswers}, Run: statusHas(`version "v2" or "v2beta1"`, func(r *kmsapi.StatusResponse) bool { return r.Version == "v2" || r.Version == "v2beta1" })},
		{Check: conformance.Check{
			ID: "KMS2-STATUS-VERSION-CONSTANT", Profile: conformance.Core,
			Title:       "version does not change",
			Rule:        "Status returns the same version in each of 50 calls.",
			Source:      sourceConfig + ": KMSv2 API version should not change after the initial status response",
			Consequence: "kube-apiserver reports the provider as unhealthy: KMSv2 API version should not change after the initial status response.",
		}, After: []string{StatusAnswers, "KMS2-STATUS-VERSION"}, Run: constant("version", (*kmsapi.StatusResponse).GetVersion)},
		{Check: conformance.Check{
			ID: "KMS2-STATUS-KEY-ID-PRESENT", Profile: conformance.Core,
			Title:       "key_id is not empty",
			Rule:        "Status returns a key_id that is not empty.",
			Source:      sourceProto + ": StatusResponse.key_id; " + sourceEnvelope + ": ValidateKeyID",
			Consequence: "kube-apiserver has no key to encrypt with: keyID is empty (invalid_key_id_from_status_total{error=\"empty\"}).",
		}, After: []string{StatusAnswers}, Run: statusHas("a key_id", func(r *kmsapi.StatusResponse) bool { return r.KeyId != "" })},
		{Check: conformance.Check{
			ID: "KMS2-STATUS-KEY-ID-SIZE", Profile: conformance.Core,
			Title:       "key_id has at most 1024 bytes",
			Rule:        "Status returns a key_id of at most 1024 bytes.",
			Source:      sourceProto + ": key_id must be less than 1 kB; " + sourceEnvelope + ": keyIDMaxSize",
			Consequence: "kube-apiserver discards the answer: keyID is N bytes, which exceeds the max size of 1024.",
		}, After: []string{StatusAnswers}, Run: statusHas(fmt.Sprintf("a key_id of at most %d bytes", maxKeyID), func(r *kmsapi.StatusResponse) bool { return len(r.KeyId) <= maxKeyID })},
		{Check: conformance.Check{
			ID: "KMS2-STATUS-KEY-ID-CONSTANT", Profile: conformance.Core,
			Title:       "key_id does not flip",
			Rule:        "Status returns the same key_id in each of 50 calls while nobody rotates the key.",
			Source:      sourceKEP + ": the key_id must be stable and must not flip-flop; " + sourceProto + ": StatusResponse.key_id",
			Consequence: "kube-apiserver makes a new data encryption key at each change, and all stored objects become stale.",
		}, After: []string{StatusAnswers, "KMS2-STATUS-KEY-ID-PRESENT"}, Run: constant("key_id", (*kmsapi.StatusResponse).GetKeyId)},
		{Check: conformance.Check{
			ID: keyIDStable, Profile: conformance.Extended,
			Title:       "key_id is stable over time",
			Rule:        "Status returns the same key_id over a period of watching while nobody rotates the key.",
			Source:      sourceKEP + ": the key_id must be stable and must not flip-flop",
			Consequence: "kube-apiserver makes a new data encryption key at each change, and all stored objects become stale.",
		}, After: []string{StatusAnswers, "KMS2-STATUS-KEY-ID-CONSTANT"}, Waits: true, Run: withStatus(statusKeyIDStable)},
		{Check: conformance.Check{
			ID: "KMS2-STATUS-KEY-ID-PRINTABLE", Profile: conformance.Extended,
			Title:       "key_id is printable text",
			Rule:        "The key_id has no control characters and no white space around it.",
			Source:      sourceProto + ": StatusResponse.key_id is a string that is public and may be stored and logged in clear text; " + sourceKEP,
			Consequence: "Tools that compare, log or store the key_id of several nodes break lines or report equal keys as different.",
		}, After: []string{StatusAnswers, "KMS2-STATUS-KEY-ID-PRESENT"}, Run: statusHas("a key_id without control characters and without white space around it", printable)},
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

// statusHas judges a single answer of Status.
func statusHas(expected string, ok func(*kmsapi.StatusResponse) bool) func(context.Context, *Plugin) error {
	return withStatus(func(_ context.Context, _ *Plugin, resp *kmsapi.StatusResponse) error {
		if !ok(resp) {
			return found("Status", resp, expected)
		}
		return nil
	})
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

func statusAnswers(ctx context.Context, p *Plugin) error {
	if _, err := p.Status(ctx); err != nil {
		return found("Status", err, "a response within "+p.timing.Call.String())
	}
	return nil
}

// keyIDStable is the id of the check without whose success a changed key_id shows nothing about a rotation or a failure.
const keyIDStable = "KMS2-STATUS-KEY-ID-STABLE"

func statusKeyIDStable(ctx context.Context, p *Plugin, first *kmsapi.StatusResponse) error {
	return p.watch(ctx, p.timing.Watch, func(ctx context.Context) error {
		resp, err := p.Status(ctx)
		switch {
		case err != nil:
			return found("Status", err, "a response")
		case resp.KeyId != first.KeyId:
			return found("Status", resp, fmt.Sprintf("key_id %s for %v", quote(first.KeyId), p.timing.Watch))
		}
		return nil
	})
}

func printable(resp *kmsapi.StatusResponse) bool {
	return strings.TrimSpace(resp.KeyId) == resp.KeyId && !strings.ContainsFunc(resp.KeyId, unicode.IsControl)
}

func statusKeyIDAfterCalls(ctx context.Context, p *Plugin, before *kmsapi.StatusResponse) error {
	for range 10 {
		if err := p.roundTrip(ctx, "Decrypt"); err != nil {
			return err
		}
	}
	after, err := p.Status(ctx)
	if err != nil {
		return found("Status after ten round trips", err, "a response")
	}
	if after.KeyId != before.KeyId {
		return found("Status after ten round trips", after, "key_id "+quote(before.KeyId)+" as before")
	}
	return nil
}
