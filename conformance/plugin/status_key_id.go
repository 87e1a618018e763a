package plugin

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	kmsapi "k8s.io/kms/apis/v2"
)

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
