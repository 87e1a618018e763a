package plugin

import (
	"cmp"
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
)

// What Status says of a healthy plugin (KMS v2).
const (
	Version = "v2"
	Healthy = "ok"
)

var _ kmsapi.KeyManagementServiceServer = (*Service)(nil)

// Service is a Plugin as gRPC serves it.
type Service struct {
	kmsapi.UnimplementedKeyManagementServiceServer
	*Plugin
}

// Status implements the KMS v2 service. A plugin that cannot use its KMS says so in healthz; that is an answer.
func (s *Service) Status(context.Context, *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
	v := s.view.Load()
	a, worded := s.inWords(v.Code, "Status")
	if worded && a.Code != codes.OK {
		return nil, status.Error(a.Code, a.Text)
	}
	resp := &kmsapi.StatusResponse{Version: Version, Healthz: Healthy, KeyId: s.KeyID(v.Noticed)}
	if v.Problem != "" {
		resp.Healthz = cmp.Or(a.Healthz, v.Problem)
	}
	return resp, nil
}

// Encrypt implements the KMS v2 service, under the KEK that the plugin has noticed.
func (s *Service) Encrypt(ctx context.Context, req *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
	if err := s.demandUID(ctx, req.Uid); err != nil {
		return nil, err
	}
	v := s.view.Load()
	if v.Noticed.ID == "" {
		return nil, s.asStatus("Encrypt", v.Code, status.Error(codes.Unavailable, v.Problem))
	}
	var sealed remotekms.Sealed
	err := s.leased(ctx, req.Uid, func(caller remotekms.Caller) (err error) {
		sealed, err = s.o.Service.Encrypt(ctx, caller, s.o.Key, keyring.Ref{Version: v.Noticed.Version}, req.Plaintext)
		return err
	})
	if err != nil {
		return nil, s.asStatus("Encrypt", remotekms.Code(err), asStatus(err))
	}
	return &kmsapi.EncryptResponse{Ciphertext: sealed.Ciphertext, KeyId: s.KeyID(sealed.KEK)}, nil
}

// Decrypt implements the KMS v2 service, for every KEK of the past. The ciphertext says which, not key_id: one that a fault
// falsified costs nobody his data.
func (s *Service) Decrypt(ctx context.Context, req *kmsapi.DecryptRequest) (*kmsapi.DecryptResponse, error) {
	if err := s.demandUID(ctx, req.Uid); err != nil {
		return nil, err
	}
	var plain []byte
	err := s.leased(ctx, req.Uid, func(caller remotekms.Caller) (err error) {
		plain, err = s.o.Service.Decrypt(ctx, caller, s.o.Key, req.Ciphertext)
		return err
	})
	if err != nil {
		return nil, s.asStatus("Decrypt", remotekms.Code(err), asStatus(err))
	}
	return &kmsapi.DecryptResponse{Plaintext: plain}, nil
}

// asStatus is the answer of the plugin's provider after a refusal that is about the lease, else other.
func (s *Service) asStatus(method, code string, other error) error {
	if a, worded := s.inWords(code, method); worded && a.Code != codes.OK {
		return status.Error(a.Code, a.Text)
	}
	return other
}

// asStatus gives an error of the remote KMS the gRPC code that real plugins use for it.
func asStatus(err error) error {
	code := codes.Internal
	if errors.Is(err, remotekms.ErrUnreachable) {
		code = codes.Unavailable
	}
	switch remotekms.Code(err) {
	case keyring.CodeDenied:
		code = codes.PermissionDenied
	case remotekms.CodeThrottled:
		code = codes.ResourceExhausted
	case keyring.CodeDisabled:
		code = codes.FailedPrecondition
	case keyring.CodeDeleted, keyring.CodeUnknown, remotekms.CodeNoKey:
		code = codes.NotFound
	case keyring.CodeCiphertext, keyring.CodeInvalid:
		code = codes.InvalidArgument
	}
	return status.Error(code, err.Error())
}

type acceptingNoUID struct{}

// AcceptingNoUID lets one call go without a uid, whatever the plugin's options say.
func AcceptingNoUID(ctx context.Context) context.Context {
	return context.WithValue(ctx, acceptingNoUID{}, true)
}

// demandUID refuses a request without a uid, as the mock of the KMS v2 API does, unless the plugin is to serve API
// servers of before the uid. The field is optional on the wire: such a request is well formed.
func (p *Plugin) demandUID(ctx context.Context, uid string) error {
	if uid != "" || p.o.UIDOptional || ctx.Value(acceptingNoUID{}) != nil {
		return nil
	}
	return status.Error(codes.InvalidArgument, "uid is required")
}
