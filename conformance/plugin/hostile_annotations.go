package plugin

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/conformance"
)

func hostileAnnotationsMissing() Check {
	return hostileAnnotations(hostileNoAnnotationsID, "missing annotations decrypt nothing wrong", "annotations that are missing or empty",
		func(p *Plugin, s Sealed) map[string]map[string][]byte {
			empty := map[string][]byte{}
			for key := range s.Annotations {
				empty[key] = nil
			}
			return map[string]map[string][]byte{"without annotations": nil, "with annotations without a value": empty}
		})
}

// maxAltered is how many annotations are altered, one at a time.
const maxAltered = 16

func hostileAnnotationsAltered() Check {
	return hostileAnnotations(hostileAlteredID, "altered annotations decrypt nothing wrong", "annotations with another value",
		func(p *Plugin, s Sealed) map[string]map[string][]byte {
			all := map[string]map[string][]byte{}
			for i, key := range sortedKeys(s.Annotations)[:min(len(s.Annotations), maxAltered)] {
				value := s.Annotations[key]
				flipped := bytes.Clone(value)
				if len(value) > 0 {
					flipped[len(value)/2] ^= 1
				}
				for how, altered := range map[string][]byte{
					"an inverted bit in": flipped, "random bytes in": p.Bytes(max(len(value), 1)), "a byte after": slices.Concat(value, []byte{'0'}),
				} {
					annotations := s.request(p).Annotations
					annotations[key] = altered
					all[fmt.Sprintf("with %s annotation %d of %d", how, i+1, len(s.Annotations))] = annotations
				}
			}
			return all
		})
}

func hostileAnnotationsExtra() Check {
	return hostileAnnotations("KMS2-HOSTILE-ANNOTATIONS-EXTRA", "further annotations decrypt nothing wrong", "further annotations, or with one of 1 MiB,",
		func(p *Plugin, s Sealed) map[string]map[string][]byte {
			few, huge := s.request(p).Annotations, s.request(p).Annotations
			if few == nil {
				few, huge = map[string][]byte{}, map[string][]byte{}
			}
			few["a.example.com"], few["z.example.com"], few["not a domain"] = []byte("1"), nil, p.Bytes(16)
			huge["huge.example.com"] = p.Bytes(1 << 20)
			return map[string]map[string][]byte{"with three further annotations": few, "with a further annotation of 1 MiB": huge}
		})
}

// hostileAnnotations is a check with requests by description. The order of the requests does not matter.
func hostileAnnotations(id, title, what string, variants func(*Plugin, Sealed) map[string]map[string][]byte) Check {
	return hostileCheck(conformance.Check{
		ID:          id,
		Title:       title,
		Rule:        "Decrypt with " + what + " is an error, or returns the plaintext that was encrypted.",
		Source:      sourceDecrypted + "; DecryptRequest.annotations are those of the encryption",
		Consequence: consequenceWrong,
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		all := variants(p, s)
		for _, how := range sortedKeys(all) {
			q := s.request(p)
			q.Annotations = all[how]
			if err := tryDecrypt(ctx, p, "Decrypt "+how, q, s.Plaintext); err != nil {
				return err
			}
		}
		return nil
	})
}

func hostileAnnotationsSwapped() Check {
	return hostileCheck(conformance.Check{
		ID:          "KMS2-HOSTILE-ANNOTATIONS-SWAPPED",
		Title:       "annotations of another ciphertext",
		Rule:        "Decrypt of one ciphertext with the annotations of another is an error, or returns one of the plaintexts that were encrypted.",
		Source:      sourceDecrypted + "; DecryptRequest.annotations are those of the encryption",
		Consequence: consequenceWrong,
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		other, err := p.Seal(ctx)
		if err != nil {
			return err
		}
		for i, pair := range [][2]Sealed{{s, other}, {other, s}} {
			q := pair[0].request(p)
			q.Annotations = pair[1].request(p).Annotations
			if err := tryDecrypt(ctx, p, fmt.Sprintf("Decrypt of ciphertext %d of 2 with the annotations of the other", i+1), q, s.Plaintext, other.Plaintext); err != nil {
				return err
			}
		}
		return nil
	}, hostileAlteredID)
}
