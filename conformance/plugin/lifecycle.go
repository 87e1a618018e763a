package plugin

import (
	"context"
	"time"
)

func lifecycle() []Check {
	return []Check{
		restartAfterStop(), stops(), keyIDAfterRestart(), waitingCall(), dataAfterStop(), restartAfterKill(), dataAfterKill(), callAtStop(), killInMidCall(),
		stopsWithIdleConnection(), manyRestarts(),
	}
}

// Sources of the checks of start and stop.
const (
	sourcePod = "kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle, Termination of Pods: SIGTERM, and SIGKILL after a grace period of 30 s by default"
	// sourceBlackout is kube-apiserver's test of a plugin that is restarted on its path.
	sourceBlackout = "k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/grpc_service_unix_test.go: TestIntermittentConnectionLoss"
)

// restart ends the plugin and starts it on the same path. It is a Finding if the plugin does not answer then. how names the signal.
func restart(ctx context.Context, p *Plugin, how string, end func(context.Context) error) error {
	if err := end(ctx); err != nil {
		return err
	}
	return startAfter(ctx, p, how)
}

// startAfter starts a plugin that has ended. A plugin that does not start is a Finding, without its output, which may have secrets. It is then
// started once more without the socket file that the last process left, so that other checks can run.
func startAfter(ctx context.Context, p *Plugin, what string) error {
	err := p.Start(ctx)
	if err == nil {
		return nil
	}
	seen := show(err)
	if end, ended := p.ended(); ended {
		seen = end
	}
	_ = p.revive(ctx) // Session.alive finds it where that fails
	return found("start at the same path after "+what, seen, "Status is answered within "+p.timing.Start.String())
}

// terminate is Terminate where it does not matter how the process ends.
func terminate(p *Plugin) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := p.Terminate(ctx)
		return err
	}
}

// retry is how often a check asks a plugin that has just been started.
const retry = 50 * time.Millisecond

// sealWhenReady encrypts as soon as the plugin can: the KMS may need time after a start.
func sealWhenReady(ctx context.Context, p *Plugin) (s Sealed, err error) {
	p.Poll(ctx, retry, p.timing.Start, func(ctx context.Context) bool {
		s, err = p.Seal(ctx)
		return err == nil
	})
	return s, err
}

// unsealWhenReady decrypts as soon as the plugin can. Until then errors are tried again, for the time of two calls at most.
func unsealWhenReady(ctx context.Context, p *Plugin, s Sealed, what string) (err error) {
	p.Poll(ctx, retry, min(p.timing.Start, 2*p.timing.Call), func(ctx context.Context) bool {
		err = p.Unseal(ctx, s, what)
		return err == nil
	})
	return err
}
