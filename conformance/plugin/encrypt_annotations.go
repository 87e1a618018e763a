package plugin

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kmsharness/kmsharness/conformance"
)

func annotationKeys() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-ENCRYPT-ANNOTATION-KEYS", Profile: conformance.Core,
			Title:       "annotation keys are domain names",
			Rule:        "The key of each annotation is a fully qualified domain name: at least two labels, as RFC 1123 defines them, in lower case.",
			Source:      sourceProto + ": EncryptResponse.annotations, constraint 1; " + sourceEnvelope + ": validateAnnotations calls IsFullyQualifiedDomainName",
			Consequence: "kube-apiserver discards the answer: failed to validate annotations.",
		},
		After: []string{EncryptAnswers},
		Run: withSealed(func(ctx context.Context, p *Plugin, s Sealed) error {
			p.Measure("%d annotations", len(s.Annotations))
			for key := range s.Annotations {
				if wrong := validation.IsFullyQualifiedDomainName(field.NewPath("annotations"), key); len(wrong) > 0 {
					return found("Encrypt", "annotation "+quote(key)+": "+clip(wrong.ToAggregate().Error()), "keys such as key.example.com")
				}
			}
			return nil
		}),
	}
}

func annotationSize() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-ENCRYPT-ANNOTATION-SIZE", Profile: conformance.Core,
			Title:       "annotations have at most 32 KiB",
			Rule:        "Keys and values of all annotations together have at most 32768 bytes.",
			Source:      sourceProto + ": EncryptResponse.annotations, constraint 2; " + sourceEnvelope + ": annotationsMaxSize",
			Consequence: "kube-apiserver discards the answer: failed to validate annotations: total size of annotations exceeds the max size of 32768.",
		},
		After: []string{EncryptAnswers},
		Run: withSealed(func(ctx context.Context, p *Plugin, s Sealed) error {
			size := 0
			for key, value := range s.Annotations {
				size += len(key) + len(value)
			}
			p.Measure("annotations of %d bytes", size)
			if size > maxAnnotationsBytes {
				return found("Encrypt", fmt.Sprintf("annotations of %d bytes", size), "at most 32768 bytes")
			}
			return nil
		}),
	}
}

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
		Run: withSealed(func(ctx context.Context, p *Plugin, s Sealed) error {
			for key, value := range s.Annotations {
				for _, data := range [][]byte{[]byte(key), value} {
					if how := reveals(data, s.Plaintext); how != "" {
						return found("Encrypt", "an annotation has a part of the plaintext "+how, "annotations without the plaintext")
					}
				}
			}
			return nil
		}),
	}
}
