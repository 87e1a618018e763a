package plugin

import (
	"context"
	"time"

	"github.com/kmsharness/kmsharness/conformance"
)

func lifecycle() []Check {
	return []Check{
		{Check: conformance.Check{
			ID: stopRestart, Profile: conformance.Extended,
			Title:       "restarts after SIGTERM",
			Rule:        "After SIGTERM the plugin starts again at the same path, and clients that were connected reach it there.",
			Source:      sourceBlackout,
			Consequence: "An upgrade of the plugin leaves kube-apiserver without it: after 3 minutes all writes of encrypted resources fail.",
			Needs:       []conformance.Capability{Command},
		}, After: []string{StatusAnswers}, Run: restartAfterStop},
		{Check: conformance.Check{
			ID: stopsOnTerm, Profile: conformance.Extended,
			Title:       "stops on SIGTERM",
			Rule:        "The process ends within 30 s of SIGTERM, while kube-apiserver is connected.",
			Source:      sourcePod,
			Consequence: "Each upgrade and each drain of a control-plane node takes 30 s longer, in which the plugin may or may not answer.",
			Needs:       []conformance.Capability{Command},
		}, After: []string{stopRestart}, Run: withStatus(stops)},
		{Check: conformance.Check{
			ID: "KMS2-LIFECYCLE-KEY-ID-AFTER-RESTART", Profile: conformance.Extended,
			Title:       "key_id survives a restart",
			Rule:        "The plugin has the same key_id before and after a restart, if the KEK has not been rotated.",
			Source:      sourceProto + ": EncryptResponse.key_id \"must always refer to the KMS KEK and not any local KEKs\"; " + sourceKEP + ", Proposal: key_id is a stable identifier, changed to trigger key rotation",
			Consequence: "Each restart of the plugin makes kube-apiserver rotate its DEK, and makes all encrypted objects stale.",
			Needs:       []conformance.Capability{Command},
		}, After: []string{stopRestart}, Run: withStatus(keyIDAfterRestart)},
		{Check: conformance.Check{
			ID: waits, Profile: conformance.Extended,
			Title:       "a waiting call is served",
			Rule:        "A call of Encrypt that waits while the plugin is down succeeds when the plugin has started: it does not accept calls before it can serve them.",
			Source:      sourceBlackout + ", TestKMSPluginLateStart",
			Consequence: "Requests that would only have been slow fail at each restart of the plugin.",
			Needs:       []conformance.Capability{Command},
		}, After: []string{stopRestart, inARow}, Waits: true, Run: waitingCall},
		dataAfter(dataKept, "SIGTERM", []string{stopRestart, inARow, waits}, (*ownProcess).end),
		{Check: conformance.Check{
			ID: killRestart, Profile: conformance.Extended,
			Title:       "restarts after SIGKILL",
			Rule:        "After SIGKILL, which leaves the socket file behind, the plugin starts again at the same path.",
			Source:      sourceBlackout + "; unix(7): bind fails with EADDRINUSE if the file exists",
			Consequence: "After the kernel has killed the plugin for lack of memory, or a crash, it stays down until somebody removes the file.",
			Needs:       []conformance.Capability{Command},
		}, After: []string{stopRestart}, Run: restartAfterKill},
		dataAfter("KMS2-LIFECYCLE-DATA-AFTER-SIGKILL", "SIGKILL", []string{dataKept, killRestart}, (*ownProcess).Kill),
		{Check: conformance.Check{
			ID: "KMS2-LIFECYCLE-CALL-AT-STOP", Profile: conformance.Extended,
			Title:       "no call hangs at a stop",
			Rule:        "A call that is in flight at SIGTERM is answered, or ends with an error, before its timeout.",
			Source:      sourcePod + "; k8s.io/kms/pkg/service/grpc_service.go: Shutdown blocks until all pending RPCs are finished, Close cancels them",
			Consequence: "Each restart of the plugin makes requests to kube-apiserver wait for the timeout of a call.",
			Needs:       []conformance.Capability{Command},
		}, After: []string{stopsOnTerm, inARow}, Run: callAtStop},
		{Check: conformance.Check{
			ID: "KMS2-LIFECYCLE-KILLED-IN-MID-CALL", Profile: conformance.Extended,
			Title:       "serves after a kill in mid-call",
			Rule:        "When SIGKILL ends the plugin in the middle of calls, it encrypts again after its next start.",
			Source:      sourceBlackout,
			Consequence: "A crash under load is not mended by a restart: kube-apiserver's provider stays unhealthy, and writes fail after 3 minutes.",
			Needs:       []conformance.Capability{Command},
		}, After: []string{killRestart, inARow}, Run: killInMidCall},
		{Check: conformance.Check{
			ID: "KMS2-LIFECYCLE-STOPS-WITH-IDLE-CONNECTION", Profile: conformance.Robustness,
			Title:       "an idle connection delays no stop",
			Rule:        "The process ends within 30 s of SIGTERM, also while a client has a connection on which it sends nothing.",
			Source:      sourcePod,
			Consequence: "A probe or a client that hangs delays each stop of the plugin until it is killed.",
			Needs:       []conformance.Capability{Command},
		}, After: []string{stopsOnTerm, idle}, Run: stopsWithIdleConnection},
		{Check: conformance.Check{
			ID: "KMS2-LIFECYCLE-TEN-RESTARTS", Profile: conformance.Extended,
			Title:       "ten restarts in a row",
			Rule:        "The plugin can be restarted ten times in a row.",
			Source:      sourcePod + "; kubelet restarts a container with restartPolicy Always as often as it ends",
			Consequence: "After some restarts the plugin stays down, and with it all writes of encrypted resources.",
			Needs:       []conformance.Capability{Command},
		}, After: []string{stopRestart}, Waits: true, Run: manyRestarts},
	}
}

// Sources of the checks of start and stop.
const (
	sourcePod = "kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle, Termination of Pods: SIGTERM, and SIGKILL after a grace period of 30 s by default"
	// sourceBlackout is kube-apiserver's test of a plugin that is restarted on its path.
	sourceBlackout = "k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/grpc_service_unix_test.go: TestIntermittentConnectionLoss"
)

// ending is a way to end the plugin.
type ending func(*ownProcess, context.Context) error

// restart ends the plugin and starts it on the same path. It is a Finding if the plugin does not answer then. how names the signal.
func restart(ctx context.Context, p *Plugin, how string, end ending) error {
	if err := end(p.ownProcess, ctx); err != nil {
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

// retry is how often a check asks a plugin that has just been started.
const retry = 50 * time.Millisecond

// sealsAgain waits until the plugin encrypts: the KMS may need time after a start.
func sealsAgain(ctx context.Context, p *Plugin) error {
	return p.until(ctx, retry, p.timing.Start, func(ctx context.Context) error {
		_, err := p.Seal(ctx)
		return err
	})
}
