package plugin

import (
	"context"
	"fmt"

	"google.golang.org/grpc/connectivity"

	"github.com/kmsharness/kmsharness/conformance"
)

// Connects is the id of the check without which no other can run.
const Connects = "KMS2-TRANSPORT-CONNECTS"

func connects() Check {
	return Check{
		Check: conformance.Check{
			ID: Connects, Profile: conformance.Core,
			Title:       "accepts gRPC connections",
			Rule:        "The plugin serves gRPC, that is HTTP/2 without TLS, on its unix socket.",
			Source:      sourceDocs + ": a gRPC server that listens at a UNIX domain socket; " + sourceClient + ": NewGRPCService dials with insecure credentials",
			Consequence: "No call of kube-apiserver succeeds: each waits for a connection and ends with DeadlineExceeded.",
		},
		Run: func(ctx context.Context, p *Plugin) error {
			ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
			defer cancel()
			p.conn.ResetConnectBackoff()
			p.conn.Connect()
			for state := p.conn.GetState(); state != connectivity.Ready; state = p.conn.GetState() {
				if !p.conn.WaitForStateChange(ctx, state) {
					return found("a gRPC connection to "+p.at.String(), fmt.Sprintf("in state %v after %v", state, p.timing.Call), "the plugin's HTTP/2 settings, so that the connection is ready")
				}
			}
			return nil
		},
	}
}
