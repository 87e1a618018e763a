package plugin

import (
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

func garbage() Check {
	return foreign("KMS2-TRANSPORT-GARBAGE", "garbage is refused", "bytes that are not HTTP/2", func(p *Plugin) string {
		b := p.Bytes(1024)
		b[0] = 0xff // what no protocol begins with
		return string(b)
	})
}

func httpRequest() Check {
	return foreign("KMS2-TRANSPORT-HTTP1", "an HTTP/1.1 request is refused", "an HTTP/1.1 request", func(*Plugin) string {
		return "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
	})
}

// foreign is a check of input in another protocol.
func foreign(id, title, what string, bytes func(*Plugin) string) Check {
	return Check{
		Check: conformance.Check{
			ID: id, Profile: conformance.Robustness,
			Title:       title,
			Rule:        "After a connection with " + what + " the plugin serves all others.",
			Source:      "RFC 9113, 3.4: an invalid preface is an error of that connection",
			Consequence: "A probe or a misconfigured client that uses the socket ends the plugin for kube-apiserver.",
		},
		After: []string{SecondConnection},
		Run: func(ctx context.Context, p *Plugin) error {
			return written("a connection with "+what, bytes(p))(ctx, p)
		},
	}
}
