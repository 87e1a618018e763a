package plugin

import (
	"context"
	"fmt"
	"time"

	kmsapi "k8s.io/kms/apis/v2"
)

// StatusAnswers is the id of the check on which all checks of calls depend.
const StatusAnswers = "KMS2-STATUS-ANSWERS"

func statusChecks() []Check {
	return []Check{
		statusAnswers(), statusHealthy(), statusHealthyAlways(), statusVersion(), statusVersionConstant(),
		statusKeyIDPresent(), statusKeyIDSize(), statusKeyIDConstant(), statusKeyIDStable(), statusKeyIDPrintable(),
	}
}

// manyCalls is how often a check calls Status where one call would show too little.
const manyCalls = 50

// eachStatus calls Status so often and stops at the first error of the plugin or of judge.
func eachStatus(ctx context.Context, p *Plugin, calls int, judge func(n int, resp *kmsapi.StatusResponse) error) error {
	for n := range calls {
		resp, err := p.Status(ctx)
		if err != nil {
			return found(fmt.Sprintf("Status, call %d", n+1), err, "a response")
		}
		if err := judge(n, resp); err != nil {
			return err
		}
	}
	return nil
}

// one judges a single answer of Status.
func one(judge func(*kmsapi.StatusResponse) error) func(context.Context, *Plugin) error {
	return func(ctx context.Context, p *Plugin) error {
		return eachStatus(ctx, p, 1, func(_ int, resp *kmsapi.StatusResponse) error { return judge(resp) })
	}
}

// constant calls Status manyCalls times and compares one field of the answers.
func constant(name string, field func(*kmsapi.StatusResponse) string) func(context.Context, *Plugin) error {
	return func(ctx context.Context, p *Plugin) error {
		var first string
		return eachStatus(ctx, p, manyCalls, func(n int, resp *kmsapi.StatusResponse) error {
			if n == 0 {
				first = field(resp)
			}
			if got := field(resp); got != first {
				return found(fmt.Sprintf("Status, call %d", n+1), resp, fmt.Sprintf("%s %s as in the first call", name, quote(first)))
			}
			return nil
		})
	}
}

// pollInterval is the time between two calls where a check waits for a change.
const pollInterval = 50 * time.Millisecond

// maxKeyID is the longest key_id that kube-apiserver accepts, in bytes.
const maxKeyID = 1024

// statusOnce calls Status over a connection of its own.
func (p *Plugin) statusOnce(ctx context.Context) (*kmsapi.StatusResponse, error) {
	conn, err := p.Dial()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
	defer cancel()
	return kmsapi.NewKeyManagementServiceClient(conn).Status(ctx, &kmsapi.StatusRequest{})
}
