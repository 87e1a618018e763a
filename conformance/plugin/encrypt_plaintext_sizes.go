package plugin

import (
	"context"
	"fmt"
	"strings"

	"github.com/kmsharness/kmsharness/conformance"
)

func plaintextSmall() Check {
	return plaintextSizes("KMS2-ENCRYPT-PLAINTEXT-SMALL", "small plaintexts are kept or refused", RoundTrip, 1, 15, 16, 17, 31)
}

const plaintextLargeID = "KMS2-ENCRYPT-PLAINTEXT-LARGE"

func plaintextLarge() Check {
	return plaintextSizes(plaintextLargeID, "larger plaintexts are kept or refused", RoundTrip, 33, 48, 64, 255, 256)
}

const plaintextGrowingID = "KMS2-ENCRYPT-PLAINTEXT-GROWING"

func plaintextGrowing() Check {
	return plaintextSizes(plaintextGrowingID, "plaintexts of up to 64 KiB are kept or refused", plaintextLargeID, 512, 1<<10, 4<<10, 16<<10, 64<<10)
}

func plaintextSizes(id, title, after string, sizes ...int) Check {
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(sizes), " ", ", "), "[]")
	return Check{
		Check: conformance.Check{
			ID: id, Profile: conformance.Robustness,
			Title:       title,
			Rule:        "Plaintexts of " + list + " bytes are decrypted to the same bytes, or Encrypt refuses them.",
			Source:      sourceProto + ": EncryptRequest.plaintext has no fixed length",
			Consequence: "None today: kube-apiserver encrypts 32 bytes. Another client, or a later release, loses what it encrypts.",
		},
		After: []string{after},
		Run: func(ctx context.Context, p *Plugin) error {
			for _, size := range sizes {
				refused, err := mayRoundTrip(ctx, p, p.Bytes(size), fmt.Sprintf("%d bytes", size))
				if err != nil {
					return err
				}
				if refused {
					p.Measure("%d bytes are refused", size)
				}
			}
			return nil
		},
	}
}
