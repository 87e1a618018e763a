package plugin

import (
	"context"
	"fmt"
	"strings"
	"unicode"

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

// keyIDStable is the id of the check without whose success a changed key_id shows nothing about a rotation or a failure.
const keyIDStable = "KMS2-STATUS-KEY-ID-STABLE"

func statusKeyIDStable() Check {
	return Check{
		Check: conformance.Check{
			ID: keyIDStable, Profile: conformance.Extended,
			Title:       "key_id is stable over time",
			Rule:        "Status returns the same key_id over a period of watching while nobody rotates the key.",
			Source:      sourceKEP + ": the key_id must be stable and must not flip-flop",
			Consequence: "kube-apiserver makes a new data encryption key at each change, and all stored objects become stale.",
		},
		After: []string{StatusAnswers, "KMS2-STATUS-KEY-ID-CONSTANT"},
		Waits: true,
		Run: func(ctx context.Context, p *Plugin) error {
			first, err := p.Status(ctx)
			if err != nil {
				return found("Status", err, "a response")
			}
			_, changed := p.Poll(ctx, pollInterval, p.timing.Watch, func(ctx context.Context) bool {
				resp, callErr := p.Status(ctx)
				switch {
				case callErr != nil:
					err = found("Status", callErr, "a response")
				case resp.KeyId != first.KeyId:
					err = found("Status", resp, fmt.Sprintf("key_id %s for %v", quote(first.KeyId), p.timing.Watch))
				}
				return err != nil
			})
			if changed {
				return err
			}
			return nil
		},
	}
}

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

func statusKeyIDAfterCalls() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-STATUS-KEY-ID-AFTER-CALLS", Profile: conformance.Extended,
			Title:       "calls do not change the key_id",
			Rule:        "The key_id of Status is the same before and after Encrypt and Decrypt.",
			Source:      sourceKEP + ": the key_id of Status is authoritative and changes by a rotation only",
			Consequence: "kube-apiserver makes a new data encryption key after its own calls, and all stored objects become stale.",
		},
		After: []string{keyIDStable, RoundTrip},
		Run: func(ctx context.Context, p *Plugin) error {
			before, err := p.Status(ctx)
			if err != nil {
				return found("Status", err, "a response")
			}
			for range 10 {
				sealed, err := p.Seal(ctx)
				if err != nil {
					return err
				}
				if err := p.Unseal(ctx, sealed, "Decrypt"); err != nil {
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
		},
	}
}
