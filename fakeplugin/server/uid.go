package server

import (
	"context"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
)

// Received is a request as the plugin gets it, which is not always as it was sent: a plan may take its uid away.
func Received(ctx context.Context, plan fault.Plan, req any) (context.Context, any) {
	if plan.UID == "" {
		return ctx, req
	}
	if plan.UID == fault.UIDDropped {
		ctx = plugin.AcceptingNoUID(ctx)
	}
	switch r := req.(type) {
	case *kmsapi.EncryptRequest:
		return ctx, &kmsapi.EncryptRequest{Plaintext: r.Plaintext}
	case *kmsapi.DecryptRequest:
		return ctx, &kmsapi.DecryptRequest{Ciphertext: r.Ciphertext, KeyId: r.KeyId, Annotations: r.Annotations}
	}
	return ctx, req
}
