package kmsplugin

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	kmsapi "k8s.io/kms/apis/v2"
)

// kmsURL is an address with a password, as nobody should log it.
const kmsURL = "https://kms-user:correct-horse@kms.example.com/v1/keys/"

func secrecyMutants() []Mutant {
	return []Mutant{
		{Name: "logs-requests", Mistake: "Each request of Encrypt is logged with its plaintext.", Caught: "KMS2-SECRECY-LOG-PLAINTEXT",
			Change: logging(func(r *Reference, q *kmsapi.EncryptRequest) {
				r.Log.Info("encrypt", "uid", q.Uid, "request", base64.StdEncoding.EncodeToString(q.Plaintext))
			})},
		{Name: "dumps-requests", Mistake: "Each plaintext is logged as a hexadecimal dump.", Caught: "KMS2-SECRECY-LOG-PLAINTEXT",
			Change: logging(func(r *Reference, q *kmsapi.EncryptRequest) { fmt.Fprint(r.Output, hex.Dump(q.Plaintext)) })},
		{Name: "logs-its-password", Mistake: "The URL of the KMS is logged with the password.", Caught: "KMS2-SECRECY-LOG-CREDENTIALS", Change: logsPassword},
		{Name: "error-has-the-plaintext", Mistake: "The error for a long plaintext quotes the plaintext.", Caught: "KMS2-SECRECY-ERROR-PLAINTEXT",
			Change: failsWith(func(q *kmsapi.EncryptRequest) string {
				return "cannot encrypt " + hex.EncodeToString(q.Plaintext[:512])
			})},
		{Name: "error-has-a-password", Mistake: "The error for a long plaintext names the URL of the KMS with the password.", Caught: "KMS2-SECRECY-ERROR-CREDENTIALS",
			Change: failsWith(func(*kmsapi.EncryptRequest) string { return "POST " + kmsURL + "encrypt: 400 Bad Request" })},
		{Name: "key-id-has-a-password", Mistake: "The key_id is the URL of the key with the password.", Caught: "KMS2-SECRECY-KEY-ID",
			Change: renameKeyID(func(id string) string { return kmsURL + id }), Also: []string{"KMS2-SECRECY-KEY-ID-ADDRESS"}},
		{Name: "key-id-has-the-address", Mistake: "The key_id is base64 of address and key, as that of HashiCorp's plugin.", Caught: "KMS2-SECRECY-KEY-ID-ADDRESS",
			Change: renameKeyID(func(id string) string {
				return base64.StdEncoding.EncodeToString([]byte("\n\x05admin\x12\x1ehttps://kms.example.com:8200\x1a" + id))
			})},
	}
}

// logging logs before each Encrypt.
func logging(log func(*Reference, *kmsapi.EncryptRequest)) func(*Reference) {
	return func(r *Reference) {
		beforeEncrypt(func(q *kmsapi.EncryptRequest) { log(r, q) })(r)
	}
}

func logsPassword(r *Reference) {
	onStatus(func(n int, _ *kmsapi.StatusResponse) {
		if n == 1 {
			r.Log.Info("connected", "kms", kmsURL)
		}
	})(r)
}

// failsWith gives the error for a plaintext that is too long another text.
func failsWith(text func(*kmsapi.EncryptRequest) string) func(*Reference) {
	return func(r *Reference) {
		r.Encrypt.before(func(_ context.Context, q *kmsapi.EncryptRequest) error {
			if len(q.Plaintext) > MaxPlaintext {
				return refuse(text(q))
			}
			return nil
		})
	}
}
