package plugin

import (
	"context"
	"fmt"

	kmsapi "k8s.io/kms/apis/v2"
)

// Ids of checks on which others depend.
const (
	encryptKeyIDPresentID = "KMS2-ENCRYPT-KEY-ID-PRESENT"
	encryptKeyIDSizeID    = "KMS2-ENCRYPT-KEY-ID-SIZE"
	// EncryptKeyIDEqualsStatus is the id of the check that Encrypt and Status return one key_id.
	EncryptKeyIDEqualsStatus = "KMS2-ENCRYPT-KEY-ID-EQUALS-STATUS"
)

func encryptKeyIDEqualsStatus(ctx context.Context, p *Plugin, before *kmsapi.StatusResponse) error {
	s, err := p.Seal(ctx)
	if err != nil {
		return err
	}
	if s.KeyId == before.KeyId {
		return nil
	}
	after, err := p.Status(ctx) // the KEK may have been rotated in between
	if err != nil {
		return found("Status after Encrypt", err, "a response")
	}
	if s.KeyId != after.KeyId {
		return found("Encrypt", s.EncryptResponse, "the key_id of Status, "+quote(after.KeyId))
	}
	return nil
}

// stableEncrypts is how many answers of Encrypt are compared.
const stableEncrypts = 50

func encryptKeyIDStable(ctx context.Context, p *Plugin, before *kmsapi.StatusResponse) error {
	var other error
	n, err := repeat(p, stableEncrypts, p.timing.Load, func(i int) error {
		s, err := p.Seal(ctx)
		if err == nil && s.KeyId != before.KeyId && other == nil {
			other = found(fmt.Sprintf("Encrypt, call %d of %d", i+1, stableEncrypts), s.EncryptResponse, "the key_id of Status, "+quote(before.KeyId))
		}
		return err
	})
	if err != nil {
		return err
	}
	after, err := p.Status(ctx)
	if err != nil {
		return found(fmt.Sprintf("Status after %d Encrypts", n), err, "a response")
	}
	if after.KeyId != before.KeyId {
		p.Measure("the key_id of Status changed meanwhile, so nothing was compared")
		return nil
	}
	return other
}
