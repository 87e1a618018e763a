package plugin

import (
	"golang.org/x/net/http2"

	"github.com/kmsharness/kmsharness/conformance"
)

func halfPreface() Check {
	return partial("KMS2-TRANSPORT-HALF-PREFACE", "half a preface blocks nobody", "half of the HTTP/2 preface", http2.ClientPreface[:len(http2.ClientPreface)/2])
}

func halfFrame() Check {
	// an empty SETTINGS frame, and the header and the first bytes of a HEADERS frame of 100 bytes
	const settings, headers = "\x00\x00\x00\x04\x00\x00\x00\x00\x00", "\x00\x00\x64\x01\x04\x00\x00\x00\x01\x83\x86"
	return partial("KMS2-TRANSPORT-HALF-FRAME", "half a frame blocks nobody", "half of an HTTP/2 frame", http2.ClientPreface+settings+headers)
}

func partial(id, title, what, bytes string) Check {
	return Check{
		Check: conformance.Check{
			ID: id, Profile: conformance.Robustness,
			Title:       title,
			Rule:        "A connection that stops after " + what + " does not delay others.",
			Source:      "RFC 9113, 3.4 and 4.1: a connection is a stream of its own; " + sourceDocs + ": timeout, by default 3 s, for each call",
			Consequence: "A client that is stopped while it sends, such as a kube-apiserver that is out of CPU, stops all others.",
		},
		After: []string{idle},
		Run:   written("a connection with "+what, bytes),
	}
}
