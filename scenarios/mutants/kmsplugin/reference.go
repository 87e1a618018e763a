package kmsplugin

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/internal/host"
)

// Reference is a correct KMS v2 plugin. A mutant changes one of its fields before it serves.
type Reference struct {
	Status  statusMethod
	Encrypt encryptMethod
	Decrypt decryptMethod
	// EncryptWith chooses the KEK for Encrypt; the newest is the last one.
	EncryptWith func(keys [][]byte) []byte
	// AAD is authenticated with each plaintext.
	AAD func() []byte
	// Listen opens the socket.
	Listen func() (net.Listener, error)
	// Options of the gRPC server.
	Options []grpc.ServerOption
	// Stop ends the server after SIGTERM.
	Stop func(*grpc.Server, net.Listener)
	// KMS is the key management service behind the plugin, and Address its name.
	KMS     *KMS
	Address string
	At      endpoint.Endpoint
	Log     *slog.Logger
	Output  io.Writer
}

// prefaceTimeout bounds how long a client may take to begin. The end of a gRPC server waits for it.
const prefaceTimeout = 1500 * time.Millisecond

// annotation is stored with each ciphertext, to have one.
const annotation = "format.reference.example.com"

// NewReference is a correct plugin in front of a KMS. Its log goes to output.
func NewReference(at endpoint.Endpoint, kms *KMS, output io.Writer) *Reference {
	r := &Reference{KMS: kms, At: at, Log: slog.New(slog.NewTextHandler(output, nil)), Output: output}
	r.Status, r.Encrypt, r.Decrypt = r.status, r.encrypt, r.decrypt
	r.Options = []grpc.ServerOption{grpc.ConnectionTimeout(prefaceTimeout)}
	r.EncryptWith = newest
	r.AAD = func() []byte { return nil }
	r.Listen = func() (net.Listener, error) { return endpoint.Listen(host.Host{}, at, endpoint.DefaultMode) }
	r.Stop = func(s *grpc.Server, _ net.Listener) {
		timer := time.AfterFunc(time.Second, s.Stop)
		defer timer.Stop()
		s.GracefulStop()
	}
	return r
}

// Serve serves until ctx ends.
func (r *Reference) Serve(ctx context.Context) error {
	if err := r.KMS.LogIn(); err != nil {
		return err
	}
	l, err := r.Listen()
	if err != nil {
		return fmt.Errorf("listen at %s: %w", r.At, err)
	}
	s := grpc.NewServer(r.Options...)
	kmsapi.RegisterKeyManagementServiceServer(s, service{r: r})
	r.Log.Info("serving", "listen", r.At.String())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		r.Stop(s, l)
	}()
	if err := s.Serve(l); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve at %s: %w", r.At, err)
	}
	<-stopped
	if !r.At.IsFile() {
		return nil
	}
	return endpoint.RemoveStale(host.Host{}, r.At.Address)
}

// service is a Reference as gRPC serves it.
type service struct {
	kmsapi.UnimplementedKeyManagementServiceServer
	r *Reference
}

func (s service) Status(ctx context.Context, q *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
	return s.r.Status(ctx, q)
}

func (s service) Encrypt(ctx context.Context, q *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
	return s.r.Encrypt(ctx, q)
}

func (s service) Decrypt(ctx context.Context, q *kmsapi.DecryptRequest) (*kmsapi.DecryptResponse, error) {
	return s.r.Decrypt(ctx, q)
}

func (r *Reference) status(context.Context, *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
	keys, err := r.KMS.Keys()
	if err != nil {
		return nil, err
	}
	healthz := "ok"
	if problem := r.KMS.Problem(); problem != nil {
		healthz = problem.Error()
	}
	return &kmsapi.StatusResponse{Version: "v2", Healthz: healthz, KeyId: KeyID(newest(keys))}, nil
}

func (r *Reference) encrypt(ctx context.Context, q *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
	if err := r.KMS.Use(ctx); err != nil {
		return nil, err
	}
	if len(q.Plaintext) > MaxPlaintext {
		return nil, status.Errorf(codes.InvalidArgument, "the plaintext has %d bytes, at most %d are encrypted", len(q.Plaintext), MaxPlaintext)
	}
	keys, err := r.KMS.Keys()
	if err != nil {
		return nil, err
	}
	key := r.EncryptWith(keys)
	return &kmsapi.EncryptResponse{Ciphertext: seal(key, q.Plaintext, r.AAD()), KeyId: KeyID(key), Annotations: map[string][]byte{annotation: []byte("1")}}, nil
}

func (r *Reference) decrypt(ctx context.Context, q *kmsapi.DecryptRequest) (*kmsapi.DecryptResponse, error) {
	if err := r.KMS.Use(ctx); err != nil {
		return nil, err
	}
	if string(q.Annotations[annotation]) != "1" {
		return nil, refuse("annotation " + annotation + " is not 1")
	}
	key, err := r.keyOf(q.KeyId)
	if err != nil {
		return nil, err
	}
	plaintext, err := open(key, q.Ciphertext, r.AAD())
	if err != nil {
		return nil, err
	}
	return &kmsapi.DecryptResponse{Plaintext: plaintext}, nil
}

// refuse is the error for a request that cannot be served.
func refuse(text string) error { return status.Error(codes.InvalidArgument, text) }

var errNoKey = status.Error(codes.NotFound, "no key has this key_id")

// keyOf returns the KEK with a key_id.
func (r *Reference) keyOf(keyID string) ([]byte, error) {
	keys, err := r.KMS.Keys()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(keys, func(key []byte) bool { return KeyID(key) == keyID })
	if i < 0 {
		return nil, errNoKey
	}
	return keys[i], nil
}

func newest(keys [][]byte) []byte { return keys[len(keys)-1] }

const (
	nonceBytes = 12
	keyBytes   = 32
	// MaxPlaintext is the longest plaintext that the reference encrypts, in bytes: the ciphertext must not exceed 1024 bytes.
	MaxPlaintext = 1024 - nonceBytes - 16
)

// KeyID is the key_id of a KEK: a hash, so that nothing of the key is public.
func KeyID(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:16])
}

// random returns n random bytes.
func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// seal encrypts and puts the nonce, a new one, before the ciphertext.
func seal(key, plaintext, aad []byte) []byte {
	nonce := random(nonceBytes)
	return gcm(key).Seal(nonce, nonce, plaintext, aad)
}

// open decrypts what seal returned.
func open(key, ciphertext, aad []byte) ([]byte, error) {
	if len(ciphertext) < nonceBytes {
		return nil, refuse("the ciphertext is too short")
	}
	plaintext, err := gcm(key).Open(nil, ciphertext[:nonceBytes], ciphertext[nonceBytes:], aad)
	if err != nil {
		return nil, refuse("the ciphertext is not authentic")
	}
	return plaintext, nil
}

func block(key []byte) cipher.Block {
	b, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // a KEK has keyBytes bytes: KMS.Keys has checked
	}
	return b
}

func gcm(key []byte) cipher.AEAD {
	aead, err := cipher.NewGCM(block(key))
	if err != nil {
		panic(err)
	}
	return aead
}
