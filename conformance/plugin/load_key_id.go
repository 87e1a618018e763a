package plugin

import (
	"context"
	"fmt"
	"sync"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

// watchers and views are the callers of the check and the calls of each.
const (
	watchers = 20
	views    = 20
)

func keyIDUnderLoad() Check {
	return Check{
		Check: conformance.Check{
			ID: "KMS2-LOAD-KEY-ID-STEADY", Profile: conformance.Extended,
			Title:       "no old key_id under load",
			Rule:        "When several callers call Status at the same time, none sees a key_id again after it has seen another.",
			Source:      sourceKEP + ", Status API: the key_id must not flip-flop while it rotates; " + sourceConfig + ": rotateDEKOnKeyIDChange",
			Consequence: "kube-apiserver rotates its DEK at each change, and counts objects as stale that are not.",
		},
		After: []string{polled, "KMS2-STATUS-KEY-ID-CONSTANT"},
		Run: func(ctx context.Context, p *Plugin) error {
			ctx, cancel := context.WithTimeout(ctx, p.timing.Load/4)
			defer cancel()
			var mu sync.Mutex
			var seen string
			together(watchers, func(int) {
				var ids []string
				for range views {
					resp, err := p.Client().Status(ctx, &kmsapi.StatusRequest{})
					if err != nil {
						return // other checks are about errors
					}
					if ids = append(ids, resp.KeyId); returns(ids) {
						mu.Lock()
						defer mu.Unlock()
						seen = fmt.Sprintf("key_id %s, then %s, then %s again", quote(ids[len(ids)-1]), quote(ids[len(ids)-2]), quote(ids[len(ids)-1]))
						return
					}
				}
			})
			if seen != "" {
				return found(fmt.Sprintf("Status by %d callers at once", watchers), seen, "each key_id in one period only")
			}
			return nil
		},
	}
}

// returns reports whether the last id was left before.
func returns(ids []string) bool {
	last := len(ids) - 1
	if last < 2 || ids[last] == ids[last-1] {
		return false
	}
	for _, id := range ids[:last-1] {
		if id == ids[last] {
			return true
		}
	}
	return false
}
