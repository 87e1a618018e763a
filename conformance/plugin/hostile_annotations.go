package plugin

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

// hostileAnnotations is a check with annotations by description. Their order does not matter.
func hostileAnnotations(id, title, what string, variants func(*Plugin, Sealed) map[string]map[string][]byte) Check {
	return hostileCheck(conformance.Check{
		ID:          id,
		Title:       title,
		Rule:        "Decrypt with " + what + " is an error, or returns the plaintext that was encrypted.",
		Source:      sourceDecrypted + "; DecryptRequest.annotations are those of the encryption",
		Consequence: consequenceWrong,
	}, func(ctx context.Context, p *Plugin, s Sealed) error {
		all := variants(p, s)
		return each(sortedKeys(all), func(how string) error {
			return tryAltered(ctx, p, s, "Decrypt "+how, func(q *kmsapi.DecryptRequest) { q.Annotations = all[how] })
		})
	})
}

func annotationsMissing(_ *Plugin, s Sealed) map[string]map[string][]byte {
	empty := map[string][]byte{}
	for key := range s.Annotations {
		empty[key] = nil
	}
	return map[string]map[string][]byte{"without annotations": nil, "with annotations without a value": empty}
}

// maxAltered is how many annotations are altered, one at a time.
const maxAltered = 16

func annotationsAltered(p *Plugin, s Sealed) map[string]map[string][]byte {
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
}

func annotationsExtra(p *Plugin, s Sealed) map[string]map[string][]byte {
	few, huge := s.request(p).Annotations, s.request(p).Annotations
	if few == nil {
		few, huge = map[string][]byte{}, map[string][]byte{}
	}
	few["a.example.com"], few["z.example.com"], few["not a domain"] = []byte("1"), nil, p.Bytes(16)
	huge["huge.example.com"] = p.Bytes(1 << 20)
	return map[string]map[string][]byte{"with three further annotations": few, "with a further annotation of 1 MiB": huge}
}

func annotationsSwapped(ctx context.Context, p *Plugin, s Sealed) error {
	other, err := p.Seal(ctx)
	if err != nil {
		return err
	}
	pairs := [][2]Sealed{{s, other}, {other, s}}
	return each([]int{0, 1}, func(i int) error {
		what := fmt.Sprintf("Decrypt of ciphertext %d of 2 with the annotations of the other", i+1)
		return tryAltered(ctx, p, pairs[i][0], what, func(q *kmsapi.DecryptRequest) { q.Annotations = pairs[i][1].request(p).Annotations }, pairs[i][1])
	})
}
