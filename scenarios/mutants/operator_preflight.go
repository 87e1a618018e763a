package mutants

import (
	"context"
	"io"
	"time"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/operator/command"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/preflight"
	"github.com/kmsharness/kmsharness/scenarios/mutants/decisions"
)

// checkers are operators, and programs of pre-flight pods, that check plugins wrongly.
func checkers() []Mutant {
	const address = "operator-preflight-address"
	return []Mutant{
		{
			Name: "failed-without-a-remote-key-id", Scenario: address, Caught: []string{"ACCEPTED"},
			Mistake: "a result of what is known: a check that fails before Status has answered has no remoteKeyID, and the CRD requires one",
			Virtual: operatorsBy(func(o *startingOperator) { changeRequests(&o.Host, patched(withoutRemoteKeyID)) }),
		},
		{
			Name: "first-check-is-final", Scenario: address, Caught: []string{"steps[6].expect"},
			Mistake: "a failed check that stands for whatever is asked for afterwards: a repaired address is never tried",
			Virtual: simulating(func() decisions.Operator {
				var failed core.Preflight
				return decisions.Mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
					if failed.Hash == "" && o.Preflight.Hash != "" && !o.Preflight.OK && !o.Preflight.At.IsZero() {
						failed = o.Preflight
					}
					if failed.Hash != "" {
						o.Preflight, o.Preflight.Hash, o.Preflight.At = failed, o.Wanted.Hash(), time.Now()
					}
				})()
			}),
		},
		{
			Name: "target-of-the-first-check", Scenario: "operator-kms-to-kms", Caught: []string{"OPERATOR-CONVERGENCE"},
			Mistake: "a remote key id that is read once: the next key is made for the KEK of the one before",
			Virtual: simulating(func() decisions.Operator {
				var first string
				return decisions.Planning(func(o core.Observed, p *core.Plan, _ time.Time) {
					if first == "" {
						first = o.Preflight.KEK
					}
					for i, a := range p.Actions {
						if c, ok := a.(core.CreateKey); ok && c.Key.Initial != "" {
							c.Key.Initial = first
							p.Actions[i] = c
						}
					}
				})()
			}),
		},
		{
			Name: "preflight-answered-is-passed", Scenario: "operator-preflight-fails", Caught: []string{"OPERATOR-CONVERGENCE", "steps[4].expect"},
			Mistake: "a pre-flight check that asks whether the plugin answers, and not what: a KMS that denies access is made the key of everything",
			Virtual: func() virtual.Options {
				return replacing(operatorProgram, func(ctx context.Context, h host.Host, args []string, stdout, stderr io.Writer) int {
					if len(args) > 0 && args[0] == command.PreflightCommand {
						return command.PreflightMain(ctx, h, args[1:], stderr, passesAnswers)
					}
					return command.Main(ctx, h, args, stdout, stderr)
				})
			},
		},
		{
			Name: "preflight-of-another-configuration", Scenario: address, Caught: []string{"steps[6].expect"},
			Mistake: "a result without the hash that was asked for: the operator waits for the one of its configuration",
			Virtual: func() virtual.Options {
				return virtual.Options{System: undertest.System{Operator: undertest.Operator{Preflight: cluster.DefaultPreflight + " --config-hash=AAAAAAA="}}}
			},
		},
	}
}

// passesAnswers passes every plugin that answers.
func passesAnswers(ctx context.Context, c kmsapi.KeyManagementServiceClient, hash string, _ preflight.Options) core.Preflight {
	r, err := c.Status(ctx, &kmsapi.StatusRequest{})
	if err != nil {
		return core.Preflight{Hash: hash, Message: err.Error()}
	}
	return core.Preflight{Hash: hash, OK: true, KEK: r.GetKeyId()}
}

// withoutRemoteKeyID leaves it out of a result that has failed.
func withoutRemoteKeyID(o *outgoing) {
	edit(o, func(status object) {
		encryption, _ := status["encryptionStatus"].(object)
		check, _ := encryption["preflight"].(object)
		if result, ok := check["result"].(object); ok && result["status"] == "Failed" {
			delete(result, "remoteKeyID")
		}
	})
}
