package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/conformance"
)

const stopsOnTerm = "KMS2-LIFECYCLE-STOPS"

func stops() Check {
	return Check{
		Check: conformance.Check{
			ID: stopsOnTerm, Profile: conformance.Extended,
			Title:       "stops on SIGTERM",
			Rule:        "The process ends within 30 s of SIGTERM, while kube-apiserver is connected.",
			Source:      sourcePod,
			Consequence: "Each upgrade and each drain of a control-plane node takes 30 s longer, in which the plugin may or may not answer.",
			Needs:       []conformance.Capability{Command},
		},
		After: []string{stopRestart},
		Run: func(ctx context.Context, p *Plugin) error {
			if _, err := p.Status(ctx); err != nil { // connects
				return found("Status", err, "a response")
			}
			return stop(ctx, p, "SIGTERM")
		},
	}
}

// stop ends the plugin with SIGTERM and starts it again. It is a Finding if the plugin had to be killed.
func stop(ctx context.Context, p *Plugin, what string) error {
	began := time.Now()
	exit, err := p.Terminate(ctx)
	if err != nil {
		return err
	}
	took := time.Since(began)
	p.Measure("ended after %v: %v", took.Round(time.Millisecond), exit)
	if err := startAfter(ctx, p, what); err != nil {
		return err
	}
	if exit.Forced {
		return found(what, fmt.Sprintf("the process still ran after %v", took.Round(time.Second)), "its end within "+p.timing.Stop.String())
	}
	_, err = sealWhenReady(ctx, p)
	return err
}

func stopsWithIdleConnection() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-LIFECYCLE-STOPS-WITH-IDLE-CONNECTION", Profile: conformance.Robustness,
			Title:       "an idle connection delays no stop",
			Rule:        "The process ends within 30 s of SIGTERM, also while a client has a connection on which it sends nothing.",
			Source:      sourcePod,
			Consequence: "A probe or a client that hangs delays each stop of the plugin until it is killed.",
			Needs:       []conformance.Capability{Command},
		},
		After: []string{stopsOnTerm, idle},
		Run: func(ctx context.Context, p *Plugin) error {
			w, err := dialWire(ctx, p)
			if err != nil {
				return err
			}
			defer w.Close()
			if err := othersServed(ctx, p, "while there is an idle one"); err != nil { // the plugin has accepted it by now
				return err
			}
			return stop(ctx, p, "SIGTERM with an idle connection")
		},
	}
}

// callsAtEnd is how many callers the plugin has when it ends.
const callsAtEnd = 4

func callAtStop() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-LIFECYCLE-CALL-AT-STOP", Profile: conformance.Extended,
			Title:       "no call hangs at a stop",
			Rule:        "A call that is in flight at SIGTERM is answered, or ends with an error, before its timeout.",
			Source:      sourcePod + "; k8s.io/kms/pkg/service/grpc_service.go: Shutdown blocks until all pending RPCs are finished, Close cancels them",
			Consequence: "Each restart of the plugin makes requests to kube-apiserver wait for the timeout of a call.",
			Needs:       []conformance.Capability{Command},
		},
		After: []string{stopsOnTerm, inARow},
		Run: func(ctx context.Context, p *Plugin) error {
			var hung error
			err := endUnderLoad(ctx, p, terminate(p), func(err error) {
				if late(err) {
					hung = err
				}
			})
			if err != nil {
				return err
			}
			if err := startAfter(ctx, p, "SIGTERM in mid-call"); err != nil {
				return err
			}
			if hung != nil {
				return found("Encrypt, in flight at SIGTERM", hung, "an answer or an error before the timeout")
			}
			_, err = sealWhenReady(ctx, p)
			return err
		},
	}
}
