package plugin

import (
	"context"
	"fmt"

	"github.com/kmsharness/kmsharness/conformance"
)

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
		Run: func(ctx context.Context, p *Plugin) error {
			s, err := p.Seal(ctx)
			if err != nil {
				return err
			}
			size := 0
			for key, value := range s.Annotations {
				size += len(key) + len(value)
			}
			p.Measure("annotations of %d bytes", size)
			if size > maxAnnotationsBytes {
				return found("Encrypt", fmt.Sprintf("annotations of %d bytes", size), "at most 32768 bytes")
			}
			return nil
		},
	}
}
