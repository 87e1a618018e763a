package plugin

import (
	"context"

	"google.golang.org/grpc"

	"github.com/kmsharness/kmsharness/conformance"
)

func authorityAccepted() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-AUTHORITY", Profile: conformance.Core,
			Title:       ":authority localhost is accepted",
			Rule:        "The plugin answers calls with the :authority \"localhost\".",
			Source:      sourceClient + ": NewGRPCService, grpc.WithAuthority(\"localhost\")",
			Consequence: "Every call of kube-apiserver fails.",
		},
		After: []string{Connects},
		Run: func(ctx context.Context, p *Plugin) error {
			_, refused := p.Status(ctx)
			if refused == nil {
				return nil
			}
			// Status may fail for other reasons, which KMS2-STATUS-ANSWERS reports.
			if _, err := statusOnNew(ctx, p, grpc.WithAuthority("kms")); err == nil {
				return found("Status with :authority localhost", refused, "a response, as with another :authority")
			}
			return nil
		},
	}
}

// otherAuthority is about clients that are not kube-apiserver: the rule only excludes a hang and damage.
func otherAuthority() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-AUTHORITY-OTHER", Profile: conformance.Robustness,
			Title:       "another :authority gets an answer",
			Rule:        "A call with another :authority than localhost is answered or refused, within the timeout of a call.",
			Source:      "RFC 9113, 8.3.1: the server serves the request for the :authority, or refuses it (8.1.1)",
			Consequence: "Health probes and debugging tools, which send other names than kube-apiserver, hang.",
		},
		After: []string{SecondConnection},
		Run: func(ctx context.Context, p *Plugin) error {
			for _, name := range []string{"kms", "kms.example.com:8080"} {
				if _, err := statusOnNew(ctx, p, grpc.WithAuthority(name)); err != nil && gone(err) {
					return found("Status with :authority "+name, err, "a response, or an error that refuses the call")
				}
			}
			return othersServed(ctx, p, "after calls with another :authority")
		},
	}
}
