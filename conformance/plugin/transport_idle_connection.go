package plugin

import (
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

// idle is the id of the check on which those of partial input depend.
const idle = "KMS2-TRANSPORT-IDLE-CONNECTION"

func idleConnection() Check {
	return Check{
		Check: conformance.Check{
			ID: idle, Profile: conformance.Robustness,
			Title:       "an idle connection blocks nobody",
			Rule:        "A connection on which nothing is sent does not delay others.",
			Source:      sourceDocs + ": timeout, by default 3 s, for each call, whatever other clients of the socket do",
			Consequence: "A client that opens the socket and sends nothing, such as a probe that only connects, stops all encryption.",
		},
		After: []string{SecondConnection},
		Run:   written("an idle connection", ""),
	}
}

// written returns a check that writes bytes on a connection of its own, and tests that others are served while it is open and after its end.
func written(what, bytes string) func(context.Context, *Plugin) error {
	return func(ctx context.Context, p *Plugin) error {
		w, err := dialWire(ctx, p)
		if err != nil {
			return err
		}
		defer w.end()
		if bytes != "" {
			_, _ = w.Write([]byte(bytes)) // the plugin may close the connection at any byte
		}
		if err := othersServed(ctx, p, "while there is "+what); err != nil {
			return err
		}
		w.end()
		return othersServed(ctx, p, "after "+what+" was closed")
	}
}
