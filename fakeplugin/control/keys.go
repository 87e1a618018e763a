package control

import (
	"fmt"

	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
)

// PluginKeys are the Keys of a plugin.
type PluginKeys struct{ *plugin.Plugin }

// KEKs implements Keys.
func (p PluginKeys) KEKs() KeysAnswer {
	v := p.View()
	return KeysAnswer{p.Key(), v.Noticed, v.Latest, append([]keyring.KEK{}, v.KEKs...), v.Problem}
}

func quote(s string) string { return fmt.Sprintf("%.64q", s) }
