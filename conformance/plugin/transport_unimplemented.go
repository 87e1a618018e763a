package plugin

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

func unknownMethod() Check {
	return unimplemented("KMS2-TRANSPORT-UNKNOWN-METHOD", "an unknown method is unimplemented", "method", "/"+kmsapi.KeyManagementService_ServiceDesc.ServiceName+"/NoSuchMethod")
}

func unknownService() Check {
	return unimplemented("KMS2-TRANSPORT-UNKNOWN-SERVICE", "an unknown service is unimplemented", "service", "/conformance.NoSuchService/Call")
}

func unimplemented(id, title, what, method string) Check {
	return Check{
		Check: conformance.Check{
			ID: id, Profile: conformance.Robustness,
			Title:       title,
			Rule:        "A call of an unknown " + what + " ends with the code Unimplemented.",
			Source:      "gRPC, doc/statuscodes.md: UNIMPLEMENTED where the server has no such method",
			Consequence: "A client that tries a newer API cannot distinguish a plugin without that API from one that fails.",
		},
		After: []string{StatusAnswers},
		Run: func(ctx context.Context, p *Plugin) error {
			ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
			defer cancel()
			_, err := p.Raw(ctx, method, nil)
			if code := status.Code(err); code != codes.Unimplemented {
				if err == nil {
					return found(method, "a response", "error Unimplemented")
				}
				return found(method, err, "error Unimplemented")
			}
			return nil
		},
	}
}
