package mutants

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/storage/value"
	kmstypes "k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/v2"
	"k8s.io/kms/pkg/service"

	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/encryption"
)

// plugins is KMS v2 plugins with a mistake that real ones had.
func plugins() []Mutant {
	return []Mutant{
		{
			Name: "key-id-reused", Scenario: "kek-rotation", Caught: []string{"steps[1].expect"}, Virtual: plugin("key-id-reused"),
			Mistake: "a key_id that names the key and not its version: after a rotation it is the one from before, and nothing is ever rewritten",
		},
		{
			Name: "key-id-of-encrypt-differs", Scenario: "operator-kek-rotation", Caught: []string{"KEY-ID-STABLE"},
			Virtual: withKMS(func(s remotekms.Service) remotekms.Service {
				return renaming{s, func(k *keyring.KEK) {
					if k.Version > 1 {
						k.ID += "-alias"
					}
				}}
			}),
			Mistake: "Encrypt answers with the ARN of the key and Status with its alias: kube-apiserver takes every Status for a rotation",
		},
		{
			Name: "decrypt-not-permitted", Scenario: "cluster-power-cycle", Caught: []string{"NO-DATA-LOSS"}, Virtual: updated("decrypt-fails"),
			Mistake: "a role that may encrypt and not decrypt: all is well until the first API server restarts",
		},
		{
			Name: "uid-dropped", Scenario: "uid-followed", Caught: []string{"UID"},
			Mistake: "a plugin that calls its KMS with a request id of its own: the three logs can no longer be joined",
			Virtual: calling(func(c *remotekms.Caller) error { c.UID = ""; return nil }),
		},
		{
			Name: "uid-not-journaled", Scenario: "uid-followed", Caught: []string{"UID"},
			Mistake: "a plugin whose log has an id of its own for each call, and not the uid of the request: nothing of it can be found by what kube-apiserver logged",
			Virtual: pluginsBy(func(p *startingPlugin) { journaling(&p.Host, func(c *journal.Call) { c.UID = "" }) }),
		},
		{
			Name: "values-in-the-log", Scenario: "uid-followed", Caught: []string{"NOTHING-SECRET"}, Virtual: loggingValues,
			Mistake: "an API server that logs what it encrypts beside the uid, to have something to look at: the log holds every secret in clear text",
		},
		{
			Name: "uid-made-anew", Scenario: "uid-followed", Caught: []string{"UID"},
			Mistake: "a plugin that makes a request id per attempt and hands that to its KMS: the KMS's audit trail names calls that nobody made",
			Virtual: calling(func(c *remotekms.Caller) error { c.UID = "attempt-1-" + c.UID; return nil }),
		},
		{
			Name: "uid-of-the-provider", Scenario: "uid-followed", Caught: []string{"UID"},
			Mistake: "an API server that makes its uid once per provider and not once per operation: hundreds of calls share one",
			Virtual: connectedBy(func(to service.Service) service.Service { return sameUID{to} }),
		},
		{
			Name: "uid-of-the-audit", Scenario: "uid-chosen-audit-id", Caught: []string{"UID"},
			Mistake: "the Audit-ID of a request for the uid of its operations: clients choose it, and one that gives all its requests the same makes them one operation",
			Virtual: connectedBy(func(to service.Service) service.Service { return uidOfAudit{to} }),
		},
		{
			Name: "uid-not-sent", Scenario: "uid-followed", Caught: []string{"UID"},
			Mistake: "an API server of before the uid, behind a plugin that does not mind: nothing can be followed, and nothing fails",
			Virtual: plugin("no-uid"),
		},
		{
			Name: "uid-required", Scenario: "uid-older-apiserver", Caught: []string{"steps[3].expect"}, Virtual: calling(requireUID),
			Mistake: "a plugin that requires a uid, behind an API server of before it: no key is made, and no secret can be written",
		},
		{
			Name: "keys-not-kept", Scenario: "uid-costs-no-operation", Caught: []string{"steps[3].expect"},
			Mistake: "an API server that unseals the key of each object anew, to have a uid for each request: every read is a call to the KMS",
			Virtual: unsealingEachTime,
		},
		{
			Name: "always-ok", Scenario: "remote-kms-lost-by-one-node", Caught: []string{"steps[1].expect"}, Virtual: plugin("healthz:text=ok"),
			Mistake: "healthz that says that the process runs: a plugin without its KMS is healthy until somebody needs a key",
		},
		{
			Name: "ok-without-its-kek", Scenario: "kek-lost", Caught: []string{"steps[2].expect"},
			Virtual: describing(func(k *keyring.KEK) { k.State = keyring.Enabled }),
			Mistake: "healthz that says that the KMS answers: a KEK that is deleted is as good as any until an API server restarts",
		},
		{
			Name: "key-id-of-the-name", Scenario: "kek-made-again", Caught: []string{"NO-DATA-LOSS", "steps[5].parallel[1]"},
			Virtual: describing(func(k *keyring.KEK) { k.ID = fmt.Sprintf("transit/keys/kms:%d", k.Version) }),
			Mistake: "a key_id of the key's name and version: a key that is made again has the one of before, and API servers go on with a seed that nobody can open",
		},
		{
			Name: "socket-unlinked-by-name", Scenario: "plugins-overlap", Caught: []string{"NO-DATA-LOSS", "steps[1].parallel[1].holds"}, Virtual: unlinking,
			Mistake: "the path of the socket removed at the end, although a successor serves there by now: nobody can connect with that, and it does not notice",
		},
		{
			Name: "capital-ok", Scenario: "plugin-crashes-and-returns", Caught: []string{"steps[4].expect"}, Virtual: updated("healthz:text=OK"),
			Mistake: "healthz OK where the API says ok: kube-apiserver compares the exact text",
		},
		{
			Name: "version-of-the-draft", Scenario: "plugin-crashes-and-returns", Caught: []string{"steps[4].expect"}, Virtual: updated("version:version=v2alpha1"),
			Mistake: "the version of the draft in StatusResponse: kube-apiserver accepts v2 and v2beta1",
		},
		{
			Name: "key-id-in-encrypt-only", Scenario: "plugin-crashes-and-returns", Caught: []string{"steps[4].expect"}, Virtual: updated("key-id-empty:method=Status"),
			Mistake: "a key_id in EncryptResponse only: Status is the authority on it, and it is how a rotation is noticed",
		},
		{
			Name: "status-asks-the-kms", Scenario: "plugin-crashes-and-returns", Caught: []string{"steps[4].expect"}, Virtual: updated("delay:by=2s,method=Status"),
			Mistake: "a Status that encrypts and decrypts at a slow KMS each time: it takes longer than any probe waits",
		},
		{
			Name: "status-blocks", Scenario: "plugin-crashes-and-returns", Caught: []string{"steps[4].expect"}, Virtual: updated("hang:method=Status"),
			Mistake: "Status and Encrypt behind one mutex, which a call to a KMS that does not answer holds",
		},
	}
}

// requireUID is for a plugin that accepts no request without a uid.
func requireUID(c *remotekms.Caller) error {
	if c.UID == "" {
		return &keyring.Refusal{Code: keyring.CodeInvalid, Message: "a uid is required"}
	}
	return nil
}

// loggingValues is API servers that log what they store.
func loggingValues() virtual.Options {
	return virtual.Options{Encryption: encryption.Around{
		Transformer: func(next value.Transformer, log io.Writer) value.Transformer { return logging{next, log} },
	}}
}

// logging logs before each write.
type logging struct {
	value.Transformer
	log io.Writer
}

// TransformToStorage implements value.Transformer.
func (l logging) TransformToStorage(ctx context.Context, data []byte, of value.Context) ([]byte, error) {
	if _, err := fmt.Fprintf(l.log, "storing %q\n", data); err != nil {
		return nil, err
	}
	return l.Transformer.TransformToStorage(ctx, data, of)
}

// connectedBy is API servers with another connection with their plugins.
func connectedBy(around func(to service.Service) service.Service) func() virtual.Options {
	return func() virtual.Options { return virtual.Options{Encryption: encryption.Around{Plugin: around}} }
}

// sameUID is a connection on which all operations have the same uid.
type sameUID struct{ service.Service }

const everyUID = "5d7f7a4e-2e5c-4a55-8c3b-3d6f0c1b2a90"

// Encrypt implements service.Service.
func (s sameUID) Encrypt(ctx context.Context, _ string, data []byte) (*service.EncryptResponse, error) {
	return s.Service.Encrypt(ctx, everyUID, data)
}

// Decrypt implements service.Service.
func (s sameUID) Decrypt(ctx context.Context, _ string, r *service.DecryptRequest) ([]byte, error) {
	return s.Service.Decrypt(ctx, everyUID, r)
}

// uidOfAudit is a connection on which an operation has the Audit-ID of its request.
type uidOfAudit struct{ service.Service }

// Decrypt implements service.Service. What an API server does by itself has no Audit-ID.
func (s uidOfAudit) Decrypt(ctx context.Context, uid string, r *service.DecryptRequest) ([]byte, error) {
	if id, ok := audit.AuditIDFrom(ctx); ok {
		uid = string(id)
	}
	return s.Service.Decrypt(ctx, uid, r)
}

// unsealingEachTime is API servers that have a plugin decrypt the key of an object at each read.
func unsealingEachTime() virtual.Options {
	var mu sync.Mutex
	var last service.Service
	return virtual.Options{Encryption: encryption.Around{
		Plugin: func(to service.Service) service.Service {
			mu.Lock()
			defer mu.Unlock()
			last = to
			return to
		},
		Transformer: func(next value.Transformer, _ io.Writer) value.Transformer {
			return unsealing{next, func() service.Service {
				mu.Lock()
				defer mu.Unlock()
				return last
			}}
		},
	}}
}

// unsealing has a plugin decrypt before each read.
type unsealing struct {
	value.Transformer
	plugin func() service.Service
}

// TransformFromStorage implements value.Transformer.
func (u unsealing) TransformFromStorage(ctx context.Context, data []byte, of value.Context) ([]byte, bool, error) {
	const prefix = "k8s:enc:kms:v2:"
	rest, isKMS := bytes.CutPrefix(data, []byte(prefix))
	_, encoded, named := bytes.Cut(rest, []byte(":"))
	var o kmstypes.EncryptedObject
	if isKMS && named && proto.Unmarshal(encoded, &o) == nil {
		_, err := u.plugin().Decrypt(ctx, string(uuid.NewUUID()), &service.DecryptRequest{Ciphertext: o.EncryptedDEKSource, KeyID: o.KeyID, Annotations: o.Annotations})
		if err != nil {
			return nil, false, err
		}
	}
	return u.Transformer.TransformFromStorage(ctx, data, of)
}
