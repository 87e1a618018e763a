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
	mux.Handle("POST /v1/keys/{key}/describe", k.data(func(r *http.Request, req cryptRequest) (any, error) {
		return k.Describe(r.Context(), req.Caller, r.PathValue("key"))
	}))
	mux.Handle("POST /v1/keys/{key}/encrypt", k.data(func(r *http.Request, req cryptRequest) (any, error) {
		return k.Encrypt(r.Context(), req.Caller, r.PathValue("key"), req.KEK, req.Data)
	}))
	mux.Handle("POST /v1/keys/{key}/decrypt", k.data(func(r *http.Request, req cryptRequest) (any, error) {
		plain, err := k.Decrypt(r.Context(), req.Caller, r.PathValue("key"), req.Data)
		return plaintext{plain}, err
	}))
	mux.Handle("POST /v1/leases", k.data(func(r *http.Request, req cryptRequest) (any, error) {
		return k.Lease(r.Context(), req.Caller, req.Terms)
	}))
	mux.Handle("POST /v1/keys/{key}/rotate", problems(httpjson.Body(k.serveRotate)))
	mux.Handle("PUT /v1/keys/{key}/keks/{version}", problems(httpjson.Body(k.serveState)))
	mux.Handle("GET /v1/rules", httpjson.Handler(func(*http.Request) (any, error) { return k.Rules(), nil }))
	mux.Handle("PUT /v1/rules", problems(httpjson.Body(func(_ *http.Request, r Rule) (any, error) { return r, k.SetRule(r) })))
	mux.Handle("DELETE /v1/rules", problems(func(r *http.Request) (any, error) { return nil, k.DeleteRule(r.URL.Query().Get("caller")) }))
	mux.HandleFunc("GET /v1/journal", func(w http.ResponseWriter, r *http.Request) { journal.Serve(w, r, k.journal, nil) })
	return httpjson.WithToken(httpjson.NotFound(mux), token)
}

// data serves a plugin. A caller that is cut off gets no answer at all, as from a network that is down.
func (k *KMS) data(serve func(*http.Request, cryptRequest) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, httpjson.MaxBody)
		answer, err := httpjson.Body(serve)(r)
		if errors.Is(err, ErrUnreachable) {
			hangUp(w)
			return
		}
		httpjson.Handler(func(*http.Request) (any, error) { return answer, asProblem(err) }).ServeHTTP(w, r)
	})
}

func hangUp(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}

func problems(h httpjson.Handler) http.Handler {
	return httpjson.Handler(func(r *http.Request) (any, error) {
		answer, err := h(r)
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
	case keyring.CodeInvalid, keyring.CodeCiphertext:
		status = http.StatusUnprocessableEntity
	}
	if strings.HasPrefix(refusal.Code, CodeLogIn) {
		status = http.StatusForbidden
	}
	return &httpjson.Problem{Status: status, Code: refusal.Code, Message: refusal.Message}
}

func (k *KMS) serveRotate(r *http.Request, req rotateRequest) (any, error) {
	if req.Reuse < 0 {
		return nil, refuse(keyring.CodeInvalid, "reuse %d: expected a version, from 1", req.Reuse)
	}
	return k.Rotate(r.Context(), r.PathValue("key"), req.Reuse)
}

func (k *KMS) serveState(r *http.Request, req stateRequest) (any, error) {
	version, err := strconv.Atoi(r.PathValue("version"))
	if err != nil {
		return nil, refuse(keyring.CodeInvalid, "version %.32q: expected a number", r.PathValue("version"))
	}
	return k.SetState(r.PathValue("key"), version, req.State, req.Denied)
}
