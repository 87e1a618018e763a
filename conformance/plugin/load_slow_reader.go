package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/conformance"
)

// unread is how many answers the client of the check does not read.
const unread = 300

func slowReader() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-LOAD-SLOW-READER", Profile: conformance.Robustness,
			Title:       "a slow reader blocks nobody",
			Rule:        "A client that does not read its answers does not delay others.",
			Source:      "RFC 9113, 5.2: flow control is for each connection; " + sourceDocs + ": timeout, by default 3 s, for each call",
			Consequence: "A kube-apiserver that is out of CPU, or stopped, stops all others.",
		},
		After: []string{SecondConnection, polled},
		Run: func(ctx context.Context, p *Plugin) error {
			began := time.Now()
			if _, err := p.Status(ctx); err != nil {
				return found("Status", err, "a response")
			}
			n := max(1, min(unread, int(p.timing.Call/4/max(time.Since(began), time.Microsecond)))) // more would keep a slow plugin busy
			f, err := dialFrames(ctx, p)
			if err != nil {
				return err
			}
			defer f.Close()
			for range n {
				if _, err := f.status(); err != nil {
					break // the plugin reads no more, or has closed the connection: both are allowed
				}
			}
			p.Measure("%d answers are not read", n)
			return othersServed(ctx, p, fmt.Sprintf("while a client does not read %d answers", n))
		},
	}
}
