package kmsplugin

import (
	"context"
	"strings"
	"sync/atomic"

	kmsapi "k8s.io/kms/apis/v2"
)

// method is a method of the plugin. A mutant puts something before, behind or around it.
type method[Q, R any] func(context.Context, *Q) (*R, error)

type (
	statusMethod  = method[kmsapi.StatusRequest, kmsapi.StatusResponse]
	encryptMethod = method[kmsapi.EncryptRequest, kmsapi.EncryptResponse]
	decryptMethod = method[kmsapi.DecryptRequest, kmsapi.DecryptResponse]
)

// around replaces the method by one that may call it.
func (m *method[Q, R]) around(f func(ctx context.Context, q *Q, next method[Q, R]) (*R, error)) {
	next := *m
	*m = func(ctx context.Context, q *Q) (*R, error) { return f(ctx, q, next) }
}

// before changes each request. An error is the answer.
func (m *method[Q, R]) before(f func(context.Context, *Q) error) {
	m.around(func(ctx context.Context, q *Q, next method[Q, R]) (*R, error) {
		if err := f(ctx, q); err != nil {
			return nil, err
		}
		return next(ctx, q)
	})
}

// after changes each answer.
func (m *method[Q, R]) after(f func(context.Context, *Q, *R)) {
	m.around(func(ctx context.Context, q *Q, next method[Q, R]) (*R, error) {
		resp, err := next(ctx, q)
		if err == nil {
			f(ctx, q, resp)
		}
		return resp, err
	})
}

// refuse answers those requests with an error for which when is true.
func (m *method[Q, R]) refuse(with error, when func(*Q) bool) {
	m.before(func(_ context.Context, q *Q) error {
		if when(q) {
			return with
		}
		return nil
	})
}

// ended is told how each call ended.
func (m *method[Q, R]) ended(f func(err error)) {
	m.around(func(ctx context.Context, q *Q, next method[Q, R]) (*R, error) {
		resp, err := next(ctx, q)
		f(err)
		return resp, err
	})
}

func beforeEncrypt(f func(*kmsapi.EncryptRequest)) func(*Reference) {
	return func(r *Reference) {
		r.Encrypt.before(func(_ context.Context, q *kmsapi.EncryptRequest) error {
			f(q)
			return nil
		})
	}
}

func beforeDecrypt(f func(*kmsapi.DecryptRequest)) func(*Reference) {
	return func(r *Reference) {
		r.Decrypt.before(func(_ context.Context, q *kmsapi.DecryptRequest) error {
			f(q)
			return nil
		})
	}
}

func afterEncrypt(f func(*kmsapi.EncryptRequest, *kmsapi.EncryptResponse)) func(*Reference) {
	return func(r *Reference) {
		r.Encrypt.after(func(_ context.Context, q *kmsapi.EncryptRequest, resp *kmsapi.EncryptResponse) { f(q, resp) })
	}
}

// onStatus changes the answers of Status; n counts the calls from 1.
func onStatus(change func(n int, resp *kmsapi.StatusResponse)) func(*Reference) {
	return func(r *Reference) {
		var calls atomic.Int64
		r.Status.around(func(ctx context.Context, q *kmsapi.StatusRequest, next statusMethod) (*kmsapi.StatusResponse, error) {
			resp, err := next(ctx, q)
			if n := calls.Add(1); err == nil {
				change(int(n), resp)
			}
			return resp, err
		})
	}
}

// together makes several changes.
func together(changes ...func(*Reference)) func(*Reference) {
	return func(r *Reference) {
		for _, change := range changes {
			change(r)
		}
	}
}

// showKeyID changes the key_id of Status and Encrypt.
func (r *Reference) showKeyID(shown func(ctx context.Context, id string) string) {
	r.Status.after(func(ctx context.Context, _ *kmsapi.StatusRequest, resp *kmsapi.StatusResponse) {
		resp.KeyId = shown(ctx, resp.KeyId)
	})
	r.Encrypt.after(func(ctx context.Context, _ *kmsapi.EncryptRequest, resp *kmsapi.EncryptResponse) {
		resp.KeyId = shown(ctx, resp.KeyId)
	})
}

// decryptWith makes Decrypt try the keys whose ids fit the key_id of the request.
func (r *Reference) decryptWith(fits func(asked, id string) bool) {
	r.Decrypt.around(func(ctx context.Context, q *kmsapi.DecryptRequest, next decryptMethod) (resp *kmsapi.DecryptResponse, err error) {
		keys, err := r.KMS.Keys()
		if err != nil {
			return nil, err
		}
		asked := q.KeyId
		err = errNoKey
		for _, key := range keys {
			if q.KeyId = KeyID(key); !fits(asked, q.KeyId) {
				continue
			}
			if resp, err = next(ctx, q); err == nil {
				break
			}
		}
		return resp, err
	})
}

// suffixKeyID appends to each key_id what suffix returns.
func (r *Reference) suffixKeyID(suffix func(context.Context) string) {
	r.showKeyID(func(ctx context.Context, id string) string { return id + "-" + suffix(ctx) })
	r.decryptWith(func(asked, id string) bool { return asked == id || strings.HasPrefix(asked, id+"-") })
}

// renameKeyID gives each key_id another form, everywhere. Decrypt finds the key of either form.
func renameKeyID(form func(string) string) func(*Reference) {
	return func(r *Reference) {
		r.showKeyID(func(_ context.Context, id string) string { return form(id) })
		r.decryptWith(func(asked, id string) bool { return asked == id || asked == form(id) })
	}
}

// anyKey makes Decrypt ignore the key_id and try all keys.
func anyKey(r *Reference) { r.decryptWith(func(string, string) bool { return true }) }
