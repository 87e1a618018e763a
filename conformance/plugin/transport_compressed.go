package plugin

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip" // also registers the compressor
	"google.golang.org/grpc/status"

	"github.com/kmsharness/kmsharness/conformance"
)

func compressed() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-COMPRESSED", Profile: conformance.Robustness,
			Title:       "compression is served or unimplemented",
			Rule:        "A request that is compressed with gzip is answered, or ends with the code Unimplemented.",
			Source:      "gRPC, doc/compression.md: an algorithm that the server does not support is UNIMPLEMENTED",
			Consequence: "kube-apiserver does not compress. Another client cannot find out that it must not.",
		},
		After: []string{SecondConnection},
		Run: func(ctx context.Context, p *Plugin) error {
			_, err := statusOnNew(ctx, p, grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.UseCompressor(gzip.Name)))
			if err != nil && status.Code(err) != codes.Unimplemented {
				return found("Status, compressed with gzip", err, "a response, or error Unimplemented")
			}
			return nil
		},
	}
}
