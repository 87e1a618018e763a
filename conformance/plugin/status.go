package plugin

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	kmsapi "k8s.io/kms/apis/v2"
)

// manyCalls is how often a check calls Status where one call would show too little.
const manyCalls = 50

// eachStatus makes a number of calls of Status, and stops at the first error of the plugin or of judge.
func eachStatus(ctx context.Context, p *Plugin, calls int, judge func(n int, resp *kmsapi.StatusResponse) error) error {
	for n := range calls {
		must(judge(n, need(p.answer(ctx, fmt.Sprintf("Status, call %d", n+1)))))
	}
	return nil
}

// statusHas judges a single answer of Status.
func statusHas(expected string, ok func(*kmsapi.StatusResponse) bool) JudgeFunc {
	return withStatus(func(_ context.Context, _ *Plugin, resp *kmsapi.StatusResponse) error {
		if !ok(resp) {
			return found("Status", resp, expected)
		}
		return nil
	})
}

// constant calls Status manyCalls times and compares one field of the answers.
func constant(name string, field func(*kmsapi.StatusResponse) string) JudgeFunc {
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

func statusKeyIDStable(ctx context.Context, p *Plugin, first *kmsapi.StatusResponse) error {
	return p.watch(ctx, p.timing.Watch, func(ctx context.Context) error {
		if resp := need(p.answer(ctx, "Status")); resp.KeyId != first.KeyId {
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
		must(p.roundTrip(ctx, "Decrypt"))
	}
	after := need(p.answer(ctx, "Status after ten round trips"))
	if after.KeyId != before.KeyId {
		return found("Status after ten round trips", after, "key_id "+quote(before.KeyId)+" as before")
	}
	return nil
}
