package remotekms

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
)

// The bodies of the API.
type (
	cryptRequest struct {
		Caller Caller      `json:"caller"`
		KEK    keyring.Ref `json:"kek,omitzero"`
		Data   []byte      `json:"data,omitempty"`
		Terms  Terms       `json:"terms,omitzero"`
	}
	rotateRequest struct {
		Reuse int `json:"reuse,omitempty"`
	}
	stateRequest struct {
		State  keyring.State       `json:"state"`
		Denied []keyring.Operation `json:"denied,omitempty"`
	}
	plaintext struct {
		Plaintext []byte `json:"plaintext"`
	}
)

// Handler serves k: the plugins' operations and the administrator's on one socket, since both are test tools. Clients need a token, if there is one.
func Handler(k *KMS, token string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", httpjson.Handler(func(*http.Request) (any, error) { return map[string]string{"status": "ok"}, nil }))
	mux.Handle("GET /v1/keys", httpjson.Handler(func(*http.Request) (any, error) { return k.Keys(), nil }))
	mux.Handle("POST /v1/keys/{key}/describe", handle(func(r *http.Request, req cryptRequest) (any, error) {
		return k.Describe(r.Context(), req.Caller, r.PathValue("key"))
	}))
	mux.Handle("POST /v1/keys/{key}/encrypt", handle(func(r *http.Request, req cryptRequest) (any, error) {
		return k.Encrypt(r.Context(), req.Caller, r.PathValue("key"), req.KEK, req.Data)
	}))
	mux.Handle("POST /v1/keys/{key}/decrypt", handle(func(r *http.Request, req cryptRequest) (any, error) {
		plain, err := k.Decrypt(r.Context(), req.Caller, r.PathValue("key"), req.Data)
		return plaintext{plain}, err
	}))
	mux.Handle("GET /v1/log-ins", httpjson.Handler(func(*http.Request) (any, error) { return k.LogIns(), nil }))
	mux.Handle("POST /v1/leases", handle(func(r *http.Request, req cryptRequest) (any, error) {
		return k.Lease(r.Context(), req.Caller, req.Terms)
	}))
	mux.Handle("POST /v1/keys/{key}/rotate", handle(func(r *http.Request, req rotateRequest) (any, error) {
		if req.Reuse < 0 {
			return nil, keyring.Refuse(keyring.CodeInvalid, "reuse %d: expected a version, from 1", req.Reuse)
		}
		return k.Rotate(r.Context(), r.PathValue("key"), req.Reuse)
	}))
	mux.Handle("POST /v1/keys/{key}/recreate", handle(func(r *http.Request, _ struct{}) (any, error) { return k.Recreate(r.PathValue("key")) }))
	mux.Handle("PUT /v1/keys/{key}/keks/{version}", handle(func(r *http.Request, req stateRequest) (any, error) {
		version, err := strconv.Atoi(r.PathValue("version"))
		if err != nil {
			return nil, keyring.Refuse(keyring.CodeInvalid, "version %.32q: expected a number", r.PathValue("version"))
		}
		return k.SetState(r.PathValue("key"), version, req.State, req.Denied)
	}))
	mux.Handle("GET /v1/rules", httpjson.Handler(func(*http.Request) (any, error) { return k.Rules(), nil }))
	mux.Handle("PUT /v1/rules", handle(func(_ *http.Request, r Rule) (any, error) { return r, k.SetRule(r) }))
	mux.Handle("DELETE /v1/rules", handle(func(r *http.Request, _ struct{}) (any, error) { return nil, k.DeleteRule(r.URL.Query().Get("caller")) }))
	mux.HandleFunc("GET /v1/journal", func(w http.ResponseWriter, r *http.Request) { journal.Serve(w, r, k.o.Journal, nil) })
	return httpjson.WithToken(httpjson.NotFound(mux), token)
}

// handle answers with what serve makes of a body. A caller that is cut off gets no answer at all, as from a network that is down.
func handle[T any](serve func(*http.Request, T) (any, error)) http.Handler {
	read := httpjson.Body(serve)
	return httpjson.Handler(func(r *http.Request) (any, error) {
		answer, err := read(r)
		if errors.Is(err, ErrUnreachable) {
			panic(http.ErrAbortHandler) // closes the connection
		}
		return answer, asProblem(err)
	})
}

// asProblem gives a refusal its HTTP status; the code goes with it, so that the client can tell them apart.
func asProblem(err error) error {
	var refusal *keyring.Refusal
	if !errors.As(err, &refusal) {
		return err
	}
	status := http.StatusConflict
	switch refusal.Code {
	case keyring.CodeUnknown, CodeNoKey, CodeNoRule:
		status = http.StatusNotFound
	case keyring.CodeDenied, CodeLease:
		status = http.StatusForbidden
	case CodeThrottled:
		status = http.StatusTooManyRequests
	case keyring.CodeInvalid, keyring.CodeCiphertext:
		status = http.StatusUnprocessableEntity
	}
	if strings.HasPrefix(refusal.Code, CodeLogIn) {
		status = http.StatusForbidden
	}
	return &httpjson.Problem{Status: status, Code: refusal.Code, Message: refusal.Message}
}
