package upstream

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
)

// maxSeen is how many key_ids are remembered: a plugin whose key_id changes with every call must not fill the memory.
const maxSeen = 1000

// seen is what the answers to Status have named. A key_id counts as a version of the KEK, in the order in which they appeared.
type seen struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	view plugin.View
}

// observe takes note of an answer to Status. A caller that gave up tells nothing of the plugin.
func (s *seen) observe(ctx context.Context, resp *kmsapi.StatusResponse, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.view.Problem = status.Convert(err).Message()
	default:
		s.view.Problem = ""
		if resp.Healthz != plugin.Healthy {
			s.view.Problem = resp.Healthz
		}
		s.notice(resp.KeyId)
	}
}

func (s *seen) notice(id string) {
	if id == "" || id == s.view.Noticed.ID {
		return
	}
	kek := keyring.KEK{ID: id, Version: len(s.view.KEKs) + 1, Created: s.clock.Now(), State: keyring.Enabled}
	if i := slices.IndexFunc(s.view.KEKs, func(k keyring.KEK) bool { return k.ID == id }); i >= 0 {
		kek = s.view.KEKs[i]
	} else if len(s.view.KEKs) < maxSeen {
		s.view.KEKs = append(s.view.KEKs[:len(s.view.KEKs):len(s.view.KEKs)], kek)
	}
	s.view.Noticed, s.view.Latest, s.view.Seen = kek, kek, s.clock.Now()
}

// View implements server.Plugin.
func (s *seen) View() plugin.View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view
}

// KeyID implements server.Plugin: a KEK has the id under which it was seen.
func (s *seen) KeyID(k keyring.KEK) string { return k.ID }
