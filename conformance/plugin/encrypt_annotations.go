package plugin

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func annotationKeys(ctx context.Context, p *Plugin, s Sealed) error {
	p.Measure("%d annotations", len(s.Annotations))
	for key := range s.Annotations {
		if wrong := validation.IsFullyQualifiedDomainName(field.NewPath("annotations"), key); len(wrong) > 0 {
			return found("Encrypt", "annotation "+quote(key)+": "+clip(wrong.ToAggregate().Error()), "keys such as key.example.com")
		}
	}
	return nil
}

func annotationSize(ctx context.Context, p *Plugin, s Sealed) error {
	size := 0
	for key, value := range s.Annotations {
		size += len(key) + len(value)
	}
	p.Measure("annotations of %d bytes", size)
	if size > maxAnnotationsBytes {
		return found("Encrypt", fmt.Sprintf("annotations of %d bytes", size), "at most 32768 bytes")
	}
	return nil
}

func annotationsHide(ctx context.Context, p *Plugin, s Sealed) error {
	for key, value := range s.Annotations {
		for _, data := range [][]byte{[]byte(key), value} {
			if how := reveals(data, s.Plaintext); how != "" {
				return found("Encrypt", "an annotation has a part of the plaintext "+how, "annotations without the plaintext")
			}
		}
	}
	return nil
}
