package mutants

import (
	"fmt"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
)

// plugins is KMS v2 plugins with a mistake that real ones had.
func plugins() []Mutant {
	return []Mutant{
		{
			Name: "key-id-reused", Scenario: "kek-rotation", Caught: []string{"steps[1].expect"}, Subject: plugin("key-id-reused"),
			Mistake: "a key_id that names the key and not its version: after a rotation it is the one from before, and nothing is ever rewritten",
		},
		{
			Name: "key-id-of-encrypt-differs", Scenario: "steady-state", Caught: []string{"KEY-ID-STABLE"}, Subject: plugin("key-id-mismatch"),
			Mistake: "Encrypt answers with the ARN of the key and Status with its alias: kube-apiserver takes every Status for a rotation",
		},
		{
			Name: "decrypt-not-permitted", Scenario: "uid-followed", Caught: []string{"NO-DATA-LOSS"}, Subject: plugin("decrypt-fails"),
			Mistake: "a role that may encrypt and not decrypt: all is well until the first API server restarts",
		},
		{
			Name: "uid-dropped", Scenario: "uid-followed", Caught: []string{"UID"},
			Mistake: "a plugin that calls its KMS with a request id of its own: the three logs can no longer be joined",
			Subject: hook(sim.TestHooks{Caller: func(c remotekms.Caller) remotekms.Caller { c.UID = ""; return c }}),
		},
		{
			Name: "uid-not-journaled", Scenario: "uid-followed", Caught: []string{"UID"},
			Mistake: "a plugin whose log has an id of its own for each call, and not the uid of the request: nothing of it can be found by what kube-apiserver logged",
			Subject: hook(sim.TestHooks{Written: func(line *journal.Call, _ any) { line.UID = "" }}),
		},
		{
			Name: "request-in-the-journal", Scenario: "uid-followed", Caught: []string{"NOTHING-SECRET"},
			Mistake: "a plugin that logs the request beside its uid, to have something to look at: the log holds every key in clear text",
			Subject: hook(sim.TestHooks{Written: func(line *journal.Call, sent any) {
				if r, ok := sent.(*kmsapi.EncryptRequest); ok {
					line.Detail = fmt.Sprintf("request %x", r.Plaintext)
				}
			}}),
		},
		{
			Name: "uid-made-anew", Scenario: "uid-followed", Caught: []string{"UID"},
			Mistake: "a plugin that makes a request id per attempt and hands that to its KMS: the KMS's audit trail names calls that nobody made",
			Subject: hook(sim.TestHooks{Caller: func(c remotekms.Caller) remotekms.Caller { c.UID = "attempt-1-" + c.UID; return c }}),
		},
		{
			Name: "uid-of-the-provider", Scenario: "uid-followed", Caught: []string{"UID"},
			Mistake: "an API server that makes its uid once per provider and not once per operation: hundreds of calls share one",
			Subject: hook(sim.TestHooks{UID: func(string) string { return "5d7f7a4e-2e5c-4a55-8c3b-3d6f0c1b2a90" }}),
		},
		{
			Name: "uid-not-sent", Scenario: "uid-followed", Caught: []string{"UID"},
			Mistake: "an API server of before the uid, behind a plugin that does not mind: nothing can be followed, and nothing fails",
			Subject: plugin("no-uid"),
		},
		{
			Name: "uid-required", Scenario: "uid-older-apiserver", Caught: []string{"steps[5].expect"}, Subject: plugin("no-uid:plugin=requires"),
			Mistake: "a plugin that requires a uid, behind an API server of before it: no key is made, and no secret can be written",
		},
		{
			Name: "keys-not-kept", Scenario: "uid-costs-no-operation", Caught: []string{"steps[3].expect"},
			Mistake: "an API server that unseals the key of each object anew, to have a uid for each request: every read is a call to the KMS",
			Subject: hook(sim.TestHooks{UnsealEachTime: true}),
		},
		{
			Name: "always-ok", Scenario: "remote-kms-lost-by-one-node", Caught: []string{"steps[1].expect"}, Subject: plugin("healthz:text=ok"),
			Mistake: "healthz that says that the process runs: a plugin without its KMS is healthy until somebody needs a key",
		},
		{
			Name: "capital-ok", Scenario: "steady-state", Caught: []string{"before.expect"}, Subject: plugin("healthz:text=OK"),
			Mistake: "healthz OK where the API says ok: kube-apiserver compares the exact text",
		},
		{
			Name: "version-of-the-draft", Scenario: "steady-state", Caught: []string{"before.expect"}, Subject: plugin("version:version=v2alpha1"),
			Mistake: "the version of the draft in StatusResponse: kube-apiserver accepts v2 and v2beta1",
		},
		{
			Name: "key-id-in-encrypt-only", Scenario: "steady-state", Caught: []string{"before.expect"}, Subject: plugin("key-id-empty:method=Status"),
			Mistake: "a key_id in EncryptResponse only: Status is the authority on it, and it is how a rotation is noticed",
		},
		{
			Name: "status-asks-the-kms", Scenario: "steady-state", Caught: []string{"before.expect"}, Subject: plugin("delay:by=2s,method=Status"),
			Mistake: "a Status that encrypts and decrypts at a slow KMS each time: it takes longer than any probe waits",
		},
		{
			Name: "status-blocks", Scenario: "steady-state", Caught: []string{"before.expect"}, Subject: plugin("hang:method=Status"),
			Mistake: "Status and Encrypt behind one mutex, which a call to a KMS that does not answer holds",
		},
	}
}
