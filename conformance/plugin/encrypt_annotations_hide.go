package plugin

import (
	"context"

	"github.com/kmsharness/kmsharness/conformance"
)

func annotationsHide() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-ENCRYPT-ANNOTATIONS-HIDE", Profile: conformance.Extended,
			Title:       "annotations hide the plaintext",
			Rule:        "No annotation contains a part of the plaintext, as it is or in a usual encoding.",
			Source:      sourceProto + ": EncryptResponse.annotations are stored in plaintext in etcd, the plugin encrypts what is sensitive",
			Consequence: "kube-apiserver stores its seed in clear beside the data that the seed encrypts. A reader of etcd can decrypt the data.",
		},
		After: []string{RoundTrip},
		Run: func(ctx context.Context, p *Plugin) error {
			s, err := p.Seal(ctx)
			if err != nil {
				return err
			}
			for key, value := range s.Annotations {
				for _, data := range [][]byte{[]byte(key), value} {
					if how := reveals(data, s.Plaintext); how != "" {
						return found("Encrypt", "an annotation has a part of the plaintext "+how, "annotations without the plaintext")
					}
				}
			}
			return nil
		},
	}
}
