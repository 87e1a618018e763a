package plugin

import (
	"context"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func abandonedRequest() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-ABANDONED-REQUEST", Profile: conformance.Robustness,
			Title:       "an incomplete request blocks nobody",
			Rule:        "A call whose request never arrives does not delay others, neither on its connection nor on others.",
			Source:      "RFC 9113, 5: the streams of a connection are independent; " + sourceDocs + ": timeout, by default 3 s, for each call",
			Consequence: "kube-apiserver's calls wait for a request that never comes, and end with DeadlineExceeded.",
		},
		After: []string{SecondConnection},
		Run: func(ctx context.Context, p *Plugin) error {
			f, err := dialFrames(ctx, p)
			if err != nil {
				return err
			}
			defer f.end()
			if _, err := f.headers(kmsapi.KeyManagementService_Encrypt_FullMethodName); err != nil {
				return err
			}
			id, err := f.status()
			if err == nil {
				err = f.await(ended(id))
			}
			if err != nil {
				return found("Status on a connection with an Encrypt whose message does not arrive", err, "an answer")
			}
			return othersServed(ctx, p, "while an Encrypt waits for its message")
		},
	}
}
