package plugin

import (
	"context"
	"fmt"
	"io"

	"github.com/kmsharness/kmsharness/conformance"
)

// dropped is how many connections are dropped in mid-call.
const dropped = 20

func droppedConnection() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-DROPPED-CONNECTION", Profile: conformance.Extended,
			Title:       "a dropped connection harms nobody",
			Rule:        "When a client closes its connection in mid-call, the plugin goes on serving others.",
			Source:      sourceClient + ": NewGRPCService closes the connection when its context ends, at a reload and at the end of kube-apiserver",
			Consequence: "A restart of kube-apiserver, or a reload of its EncryptionConfiguration, ends the plugin for everybody.",
		},
		After: []string{SecondConnection},
		Run: func(ctx context.Context, p *Plugin) error {
			for i := range dropped {
				f, err := dialFrames(ctx, p)
				if err != nil {
					return found(fmt.Sprintf("connection %d, after as many were closed in mid-call", i+1), err, "a connection")
				}
				if _, err := f.status(); err == nil {
					// The first byte is that of the plugin's settings: it has accepted. What else it sent is unread, which resets the connection.
					_, _ = io.ReadFull(f, make([]byte, 1))
				}
				_ = f.Close()
			}
			return othersServed(ctx, p, fmt.Sprintf("after %d connections were closed in mid-call", dropped))
		},
	}
}
