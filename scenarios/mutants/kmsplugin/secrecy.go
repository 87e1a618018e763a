package kmsplugin

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"
)

// kmsURL is an address with a password, as nobody should log it.
const kmsURL = "https://kms-user:correct-horse@kms.example.com/v1/keys/"

func secrecyMutants() []Mutant {
	return []Mutant{
		{Name: "logs-requests", Mistake: "Each request of Encrypt is logged with its plaintext.", Caught: "KMS2-SECRECY-LOG-PLAINTEXT", Change: logsRequests},
		{Name: "dumps-requests", Mistake: "Each plaintext is logged as a hexadecimal dump.", Caught: "KMS2-SECRECY-LOG-PLAINTEXT", Change: dumpsRequests},
		{Name: "logs-its-password", Mistake: "The URL of the KMS is logged with the password.", Caught: "KMS2-SECRECY-LOG-CREDENTIALS", Change: logsPassword},
		{Name: "error-has-the-plaintext", Mistake: "The error for a long plaintext quotes the plaintext.", Caught: "KMS2-SECRECY-ERROR-PLAINTEXT",
			Change: failsWith(func(q *kmsapi.EncryptRequest) string { return "cannot encrypt " + hex.EncodeToString(q.Plaintext) })},
		{Name: "error-has-a-password", Mistake: "The error for a long plaintext names the URL of the KMS with the password.", Caught: "KMS2-SECRECY-ERROR-CREDENTIALS",
			Change: failsWith(func(*kmsapi.EncryptRequest) string { return "POST " + kmsURL + "encrypt: 400 Bad Request" })},
		{Name: "key-id-has-a-password", Mistake: "The key_id is the URL of the key with the password.", Caught: "KMS2-SECRECY-KEY-ID",
			Change: renameKeyID(func(id string) string { return kmsURL + id })},
	}
}

func logsRequests(r *Reference) {
	next := r.Encrypt
	r.Encrypt = func(ctx context.Context, q *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
		r.Log.Info("encrypt", "uid", q.Uid, "request", base64.StdEncoding.EncodeToString(q.Plaintext))
		return next(ctx, q)
	}
}

func dumpsRequests(r *Reference) {
	next := r.Encrypt
	r.Encrypt = func(ctx context.Context, q *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
		fmt.Fprint(r.Output, hex.Dump(q.Plaintext))
		return next(ctx, q)
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
		next := r.Encrypt
		r.Encrypt = func(ctx context.Context, q *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
			if len(q.Plaintext) > MaxPlaintext {
				q.Plaintext = q.Plaintext[:min(len(q.Plaintext), 512)]
				return nil, status.Error(codes.InvalidArgument, text(q))
			}
			return next(ctx, q)
		}
	}
}
