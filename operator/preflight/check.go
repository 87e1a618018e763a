package preflight

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/core"
)

// Options of a check.
type Options struct {
	Clock clock.WithTicker
	// Random makes the plaintext.
	Random io.Reader
	// UID makes the uid of a call.
	UID func() string
	// Pause between two Status calls, and Call the deadline of each call.
	Pause, Call time.Duration
}

// plaintextSize is that of the seeds which kube-apiserver has encrypted.
const plaintextSize = 32

// Check is bounded by ctx. hash is that of the configuration that the plugin behind the client was started with.
func Check(ctx context.Context, c kmsapi.KeyManagementServiceClient, hash string, o Options) core.Preflight {
	kek, err := check{Options: o, client: c}.all(ctx)
	return o.result(hash, kek, err)
}

// CheckStatus asks for the health of a plugin, as Check does first.
func CheckStatus(ctx context.Context, c kmsapi.KeyManagementServiceClient, hash string, o Options) core.Preflight {
	kek, err := check{Options: o, client: c}.awaitHealth(ctx)
	return o.result(hash, kek, err)
}

func (o Options) result(hash, kek string, err error) core.Preflight {
	result := core.Preflight{Hash: hash, OK: err == nil, KEK: kek, At: o.Clock.Now()}
	if err != nil {
		result.Message = contract.SafeDetail(err.Error()) // the plugin's own words may be in it
	}
	return result
}

type check struct {
	Options
	client kmsapi.KeyManagementServiceClient
}

func (c check) all(ctx context.Context) (kek string, err error) {
	if kek, err = c.awaitHealth(ctx); err != nil {
		return kek, fmt.Errorf("status: %w", err)
	}
	plain := make([]byte, plaintextSize)
	if _, err := io.ReadFull(c.Random, plain); err != nil {
		return kek, fmt.Errorf("make a plaintext: %w", err)
	}
	encrypted, err := c.encrypt(ctx, plain, kek)
	if err != nil {
		return kek, fmt.Errorf("encrypt: %w", err)
	}
	if err := c.decrypt(ctx, plain, encrypted); err != nil {
		return kek, fmt.Errorf("decrypt: %w", err)
	}
	return kek, nil
}

// awaitHealth asks until the plugin is well. A plugin that has just been started may not have found its KMS yet.
func (c check) awaitHealth(ctx context.Context) (kek string, err error) {
	var why error
	for {
		began := c.Clock.Now()
		seen, err := c.status(ctx)
		kek = cmp.Or(seen, kek)
		if err == nil {
			return kek, nil
		}
		// A call that the end of the check cut off says nothing about the plugin.
		cutOff := status.Code(err) == codes.DeadlineExceeded && c.Clock.Now().Sub(began) < c.Call
		if why == nil || !cutOff {
			why = err
		}
		timer := c.Clock.NewTimer(c.Pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return kek, fmt.Errorf("not ok until the end of the check: %w", why)
		case <-timer.C():
		}
	}
}

// status asks once. The key_id comes with an error, too, if it is one.
func (c check) status(ctx context.Context) (kek string, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.Call)
	defer cancel()
	r, err := c.client.Status(ctx, &kmsapi.StatusRequest{})
	if err != nil {
		return "", err
	}
	wrong := CheckKEK(r.GetKeyId())
	if wrong == nil {
		kek = r.GetKeyId()
	}
	switch {
	case r.GetHealthz() != "ok":
		return kek, fmt.Errorf("healthz is %q: expected ok", r.GetHealthz())
	case r.GetVersion() != "v2" && r.GetVersion() != "v2beta1":
		return kek, fmt.Errorf("version is %q: expected v2", r.GetVersion())
	}
	return kek, wrong
}

// CheckKEK says what is wrong with the kekID of a check that has passed: the CRD refuses it.
func CheckKEK(kek string) error {
	if kek == "" || len(kek) > contract.MaxKEKIDBytes {
		return fmt.Errorf("key_id has %d bytes: expected 1 to %d", len(kek), contract.MaxKEKIDBytes)
	}
	return nil
}

func (c check) encrypt(ctx context.Context, plain []byte, kek string) (*kmsapi.EncryptResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Call)
	defer cancel()
	r, err := c.client.Encrypt(ctx, &kmsapi.EncryptRequest{Plaintext: plain, Uid: c.UID()})
	switch {
	case err != nil:
		return nil, err
	case r.GetKeyId() != kek:
		return nil, fmt.Errorf("key_id is %q: expected %q, as Status says", r.GetKeyId(), kek)
	case len(r.GetCiphertext()) == 0 || len(r.GetCiphertext()) > maxCiphertext:
		return nil, fmt.Errorf("the ciphertext has %d bytes: expected 1 to %d", len(r.GetCiphertext()), maxCiphertext)
	case bytes.Equal(r.GetCiphertext(), plain):
		return nil, errors.New("the ciphertext is the plaintext")
	}
	return r, checkAnnotations(r.GetAnnotations())
}

// checkAnnotations says what kube-apiserver refuses (validateAnnotations of kmsv2): it would not load the plugin.
func checkAnnotations(all map[string][]byte) error {
	size := 0
	for _, key := range slices.Sorted(maps.Keys(all)) {
		size += len(key) + len(all[key])
		if wrong := validation.IsFullyQualifiedDomainName(field.NewPath("annotations"), key); len(wrong) > 0 {
			return fmt.Errorf("annotation %q: expected a key such as key.example.com: %w", key, wrong.ToAggregate())
		}
	}
	if size > maxAnnotations {
		return fmt.Errorf("the annotations have %d bytes: expected at most %d", size, maxAnnotations)
	}
	return nil
}

// maxCiphertext and maxAnnotations are kube-apiserver's limits, in bytes.
const (
	maxCiphertext  = 1024
	maxAnnotations = 32 << 10
)

func (c check) decrypt(ctx context.Context, plain []byte, e *kmsapi.EncryptResponse) error {
	ctx, cancel := context.WithTimeout(ctx, c.Call)
	defer cancel()
	r, err := c.client.Decrypt(ctx, &kmsapi.DecryptRequest{Ciphertext: e.GetCiphertext(), Uid: c.UID(), KeyId: e.GetKeyId(), Annotations: e.GetAnnotations()})
	switch {
	case err != nil:
		return err
	case !bytes.Equal(r.GetPlaintext(), plain):
		return errors.New("what comes back is not what was encrypted")
	}
	return nil
}
