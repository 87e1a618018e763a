package plugin

import (
	"context"
	"fmt"
	"slices"
)

func decryptRepeated(ctx context.Context, p *Plugin, s Sealed) error {
	return each([]string{"first", "second", "third"}, func(n string) error { return p.Unseal(ctx, s, n+" Decrypt of a ciphertext") })
}

// orderedSeals is how many ciphertexts are decrypted in reverse.
const orderedSeals = 100

func decryptAnyOrder(ctx context.Context, p *Plugin) error {
	var all []Sealed
	need(repeat(p, orderedSeals, p.timing.Load/2, func(int) error {
		s, err := p.Seal(ctx)
		all = append(all, s)
		return err
	}))
	for i, s := range slices.Backward(all) {
		must(p.Unseal(ctx, s, fmt.Sprintf("Decrypt of ciphertext %d of %d, in reverse order", i+1, len(all))))
	}
	return nil
}

func decryptOtherConnection(ctx context.Context, p *Plugin, s Sealed) error {
	other := need(p.another())
	defer other.conn.Close()
	return other.Unseal(ctx, s, "Decrypt over a new connection")
}

// laterEncrypts is how many Encrypts come between Encrypt and Decrypt of one plaintext.
const laterEncrypts = 200

func decryptLater(ctx context.Context, p *Plugin, s Sealed) error {
	n := need(repeat(p, laterEncrypts, p.timing.Load, func(int) error {
		_, err := p.Seal(ctx)
		return err
	}))
	return p.Unseal(ctx, s, fmt.Sprintf("Decrypt after %d further Encrypts", n))
}

func decryptAfterStatus(ctx context.Context, p *Plugin, s Sealed) error {
	for range 3 {
		need(p.answer(ctx, "Status between Encrypt and Decrypt"))
	}
	return p.Unseal(ctx, s, "Decrypt after three calls of Status")
}
