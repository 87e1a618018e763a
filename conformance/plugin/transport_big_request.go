package plugin

import (
	"context"
	"fmt"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

// bigRequest sizes: below and above what gRPC servers accept by default (4 MiB).
const (
	bigMessage  = 1 << 20
	hugeMessage = 5 << 20
)

func bigRequest() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-TRANSPORT-BIG-REQUEST", Profile: conformance.Robustness,
			Title:       "a big request harms nobody",
			Rule:        "A request of 1 MiB or 5 MiB is answered or refused, and the plugin serves others.",
			Source:      "gRPC: a server limits the size of messages, by default to 4 MiB, and refuses larger ones with RESOURCE_EXHAUSTED",
			Consequence: "One client that sends too much ends the plugin for kube-apiserver.",
		},
		After: []string{SecondConnection},
		Run: func(ctx context.Context, p *Plugin) error {
			for _, size := range []int{bigMessage, hugeMessage} {
				call, cancel := context.WithTimeout(ctx, p.timing.Call)
				_, _ = p.Raw(call, kmsapi.KeyManagementService_Status_FullMethodName, unknownField(size))
				cancel()
				if err := othersServed(ctx, p, fmt.Sprintf("after a Status with %d bytes", size)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
