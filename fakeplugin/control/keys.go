package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
	"github.com/kmsharness/kmsharness/fakeplugin/upstream"
)

type PluginKeys struct{ *plugin.Plugin }

// SetNoticeLag implements Keys.
func (p PluginKeys) SetNoticeLag(lag time.Duration) error {
	p.Plugin.SetNoticeLag(lag)
	return nil
}

// UpstreamKeys are the Keys of a plugin behind this one, as far as its answers name them.
type UpstreamKeys struct{ *upstream.Plugin }

// Rotate implements Keys.
func (p UpstreamKeys) Rotate(context.Context, int) (keyring.KEK, error) {
	return keyring.KEK{}, fmt.Errorf("the key belongs to the plugin at %s, which no KMS v2 call can rotate", p.Endpoint())
}

// SetNoticeLag implements Keys.
func (p UpstreamKeys) SetNoticeLag(lag time.Duration) error {
	if lag != 0 {
		return errors.New("the plugin behind this one notices a rotation by itself: expected 0s")
	}
	return nil
}

func (a API) keks() KeysAnswer {
	v := a.Keys.View()
	return KeysAnswer{a.Keys.Key(), v.Noticed, v.Latest, append([]keyring.KEK{}, v.KEKs...), v.Problem}
}
