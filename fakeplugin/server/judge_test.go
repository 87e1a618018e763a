package server

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	kmsapi "k8s.io/kms/apis/v2"
)

// dns1123 is the form of an annotation's key: lower-case labels of at most 63, at least two of them.
var dns1123 = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)+$`)

// judge is what kube-apiserver demands of a plugin: nil for a good one.
func (w *world) judge(c kmsapi.KeyManagementServiceClient, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	first, err := c.Status(ctx, &kmsapi.StatusRequest{})
	if err != nil {
		return fmt.Errorf("Status: %w", err)
	}
	second, err := c.Status(ctx, &kmsapi.StatusRequest{})
	if err != nil {
		return fmt.Errorf("Status: %w", err)
	}
	enc, err := c.Encrypt(ctx, &kmsapi.EncryptRequest{Uid: "uid-e", Plaintext: []byte(seed)})
	if err != nil {
		return fmt.Errorf("Encrypt: %w", err)
	}
	if err := errors.Join(judgeStatus(first, second), judgeEncrypt(enc, first.KeyId)); err != nil {
		return err
	}
	dec, err := c.Decrypt(ctx, &kmsapi.DecryptRequest{Uid: "uid-d", Ciphertext: enc.Ciphertext, KeyId: enc.KeyId, Annotations: enc.Annotations})
	if err != nil || string(dec.Plaintext) != seed {
		return fmt.Errorf("Decrypt: %q, %w", dec.GetPlaintext(), err)
	}
	return nil
}

func judgeStatus(first, second *kmsapi.StatusResponse) error {
	switch {
	case first.Healthz != "ok":
		return fmt.Errorf("healthz %.40q", first.Healthz)
	case first.Version != "v2" && first.Version != "v2beta1":
		return fmt.Errorf("version %.40q", first.Version)
	case first.Version != second.Version:
		return fmt.Errorf("version changed to %q", second.Version)
	case first.KeyId == "" || len(first.KeyId) > 1024:
		return fmt.Errorf("key_id of %d bytes", len(first.KeyId))
	case first.KeyId != second.KeyId:
		return fmt.Errorf("key_id changed to %q", second.KeyId)
	}
	return nil
}

func judgeEncrypt(enc *kmsapi.EncryptResponse, keyID string) error {
	switch {
	case enc.KeyId != keyID:
		return fmt.Errorf("Encrypt says %.40q, Status %.40q", enc.KeyId, keyID)
	case len(enc.Ciphertext) == 0 || len(enc.Ciphertext) > 1024:
		return fmt.Errorf("ciphertext of %d bytes", len(enc.Ciphertext))
	case strings.Contains(string(enc.Ciphertext), seed):
		return errors.New("ciphertext shows the plaintext")
	}
	size := 0
	for key, value := range enc.Annotations {
		if size += len(key) + len(value); !dns1123.MatchString(key) || len(key) > 253 {
			return fmt.Errorf("annotation %.40q", key)
		}
	}
	if size > 32<<10 {
		return fmt.Errorf("annotations of %d bytes", size)
	}
	return nil
}
