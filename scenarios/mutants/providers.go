package mutants

import (
	"path"
	"strings"
	"time"

	aggregator "github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	kmsplugin "github.com/kmsharness/kmsharness/fakeplugin/plugin"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	reporter "github.com/kmsharness/kmsharness/reporter/core"
)

const columnBytes = 80

// labelBytes is the length of a Kubernetes label's value.
const labelBytes = 63

// providerReporters are reporters that were tried with one provider only.
func providerReporters() []Mutant {
	return []Mutant{
		{
			Name: "first-words-of-the-error", Scenario: "vault-token-expires", Caught: []string{"steps[1].expect"},
			Mistake: "an error cut to what fits into a column: Vault's begins with the address of the request, and what failed stands at its end",
			Virtual: misread(failed(func(text string) string { return text[:min(len(text), columnBytes)] })),
		},
		{
			Name: "original-error-left-out", Scenario: "azure-refusals", Caught: []string{"steps[3].expect"},
			Mistake: "an error without those that it wraps: Azure's says that a request failed, and the one behind it why",
			Virtual: misread(failed(func(text string) string {
				text, _, _ = strings.Cut(text, " -- Original Error")
				return text
			})),
		},
		{
			Name: "key-version-left-out", Scenario: "gcp-refusals", Caught: []string{"TRUTHFUL-PROBE", "steps[1].expect"},
			Mistake: "the name of Google's key in the place of that of its version: a rotation is seen by nobody",
			Virtual: misread(answered(func(a *reporter.Answer) { a.KeyID, _, _ = strings.Cut(a.KeyID, "/cryptoKeyVersions/") })),
		},
		{
			Name: "key-id-cut-as-a-label", Scenario: "aws-rotation-does-not-show", Caught: []string{"TRUTHFUL-PROBE"},
			Mistake: "a kekID cut to the 63 bytes of a label: it was tried with the fake's short ids, and an ARN loses the end that tells keys apart",
			Virtual: misread(answered(func(a *reporter.Answer) { a.KeyID = a.KeyID[:min(len(a.KeyID), labelBytes)] })),
		},
		{
			Name: "deadline-of-a-local-plugin", Scenario: "thales-latency-near-the-deadline", Caught: []string{"steps[1].never"},
			Mistake: "a deadline that was chosen for plugins which answer from memory: an HSM that is busy is unreachable",
			Virtual: probingFor(300 * time.Millisecond),
		},
	}
}

// failed changes the texts of errors.
func failed(change func(text string) string) func(*reporter.Event) {
	return func(ev *reporter.Event) {
		for i, r := range ev.Results {
			if r.Failure != nil {
				f := *r.Failure
				f.Text = change(f.Text)
				ev.Results[i].Failure = &f
			}
		}
	}
}

// providerAggregators are aggregators that take one provider's key_id for what it is not.
func providerAggregators() []Mutant {
	return []Mutant{{
		Name: "number-taken-for-a-key", Scenario: "vault-key-id-is-a-small-number", Caught: []string{"steps[2].expect"},
		Mistake: "a kekID that is a number is taken for a keyID: a rotation in Vault is called a migration between two keys",
		Virtual: overlooking(everyEntry(func(_ *aggregator.Input, e *contract.Entry) {
			if len(e.KEKID) == 1 {
				e.KeyID = e.KEKID
			}
		})),
	}}
}

// providerPlugins are plugins that a provider refuses from the start.
func providerPlugins() []Mutant {
	return []Mutant{{
		Name: "lease-never-renewed", Scenario: "vault-approle-then-certificate", Caught: []string{"steps[5].holds"},
		Mistake: "a token that is used until it is refused: a certificate that has expired ends it at once, in place of at the end of the time for which it could be renewed",
		Virtual: leasing(func(s kmsplugin.Session, now time.Time) kmsplugin.Act {
			if s.ID != "" {
				return ""
			}
			return kmsplugin.Decide(s, now)
		}),
	}, {
		Name: "log-in-tried-once", Scenario: "vault-approle-then-certificate", Caught: []string{"steps[3].expect"},
		Mistake: "a refused log-in taken for final: the credential is renewed, and the plugin needs a restart to notice",
		Virtual: withKMS(func(s remotekms.Service) remotekms.Service { return &refusing{Service: s} }),
	}, {
		Name: "app-role-for-ever", Scenario: "vault-bootstrap", Caught: []string{"steps[2].holds"},
		Mistake: "a bootstrap credential that goes on being used: the certificate is there, and who revokes the AppRole takes the KMS away",
		Virtual: withKMS(func(s remotekms.Service) remotekms.Service {
			return logIns{s, func(c *remotekms.Caller, _ *remotekms.Terms) { c.Certificate = remotekms.Certificate{} }}
		}),
	}, {
		Name: "certificate-never-rotated", Scenario: "vault-bootstrap", Caught: []string{"steps[2].holds"},
		Mistake: "a certificate that is kept until it has expired: the AppRole that could bring another one was revoked long ago",
		Virtual: withKMS(func(s remotekms.Service) remotekms.Service {
			return logIns{s, func(c *remotekms.Caller, t *remotekms.Terms) {
				if c.Certificate != (remotekms.Certificate{}) {
					t.Certificate = 0
				}
			}}
		}),
	}, {
		Name: "healthy-without-a-lease", Scenario: "aws-credentials-expire", Caught: []string{"steps[3].expect"}, Virtual: plugin("healthz:text=ok"),
		Mistake: "a Status that does not ask whether the credentials are still good: ok is what the plugin says until somebody needs a key",
	}, {
		Name: "policy-without-decrypt", Scenario: "cluster-power-cycle", Caught: []string{"NO-DATA-LOSS"}, Virtual: updated("provider-failure:profile=vault,failure=encrypt-denied,method=Decrypt"),
		Mistake: "a Vault policy that has encrypt and not decrypt: Status says ok, and the first API server that restarts cannot read",
	}, {
		Name: "log-in-for-each-call-simulated", Scenario: "kms-throttles-log-ins", Caught: []string{"steps[6].expect"},
		Mistake: "a client of Vault made for each call: the Decrypts of an API server that starts are a storm of log-ins, and Vault refuses the rest",
		Virtual: withKMS(func(s remotekms.Service) remotekms.Service { return loggingIn{s} }),
	}, {
		Name: "key-of-each-node", Scenario: "plugins-with-one-key-id", Caught: []string{"NO-DATA-LOSS"},
		Mistake: "a key of its own on each control plane, under the key_id of all: each API server reads what it wrote, and nothing else",
		Virtual: restarted(func(p *startingPlugin) { // from its second start: with such plugins no cluster begins
			p.configure = append(p.configure, func(o *kmsplugin.Options) { o.Key += "-" + path.Dir(o.Name) })
		}),
	}}
}
