package plugin

import (
	"context"

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
		Run: func(ctx context.Context, p *Plugin) error {
			s, err := p.Seal(ctx)
			if err != nil {
				return err
			}
			p.Measure("%d annotations", len(s.Annotations))
			for key := range s.Annotations {
				if wrong := validation.IsFullyQualifiedDomainName(field.NewPath("annotations"), key); len(wrong) > 0 {
					return found("Encrypt", "annotation "+quote(key)+": "+clip(wrong.ToAggregate().Error()), "keys such as key.example.com")
				}
			}
			return nil
		},
	}
}
