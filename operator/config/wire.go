package config

import (
	"encoding/json"
	"fmt"
)

// wirePlugin is a plugin where it is stored.
type wirePlugin struct {
	Provider string            `json:"provider"`
	Image    string            `json:"image,omitempty"`
	Settings map[string]string `json:"settings"`
}

// MarshalJSON implements json.Marshaler.
func (p Plugin) MarshalJSON() ([]byte, error) {
	return json.Marshal(wirePlugin{Provider: p.Provider, Image: p.Image, Settings: p.Settings()})
}

// UnmarshalJSON implements json.Unmarshaler, and validates as Read does.
func (p *Plugin) UnmarshalJSON(text []byte) error {
	var w wirePlugin
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	plugin, err := NewPlugin(w.Provider, w.Image, w.Settings)
	*p = plugin
	return err
}

// NewPlugin is a plugin of settings by their paths, as Plugin.Settings has them.
func NewPlugin(provider, image string, settings map[string]string) (Plugin, error) {
	known, ok := providerNamed(provider)
	if !ok {
		return Plugin{}, fmt.Errorf("provider %q is unknown: expected one of %s", provider, names())
	}
	known.Fields = known.stored()
	return newPlugin(known, provider, settings, Options{Image: image})
}

// stored are the fields without the image, which a plugin has apart.
func (p Provider) stored() []Field {
	var all []Field
	for _, f := range p.Fields {
		if f.Path != imageSetting {
			all = append(all, f)
		}
	}
	return all
}

// KeyName is what the KMS calls the key, for people: the settings that choose it.
func (p Plugin) KeyName() string {
	provider, _ := providerNamed(p.Provider)
	settings, text := p.Settings(), ""
	for _, f := range provider.Fields {
		if v := settings[f.Path]; f.Key && v != "" {
			text += sep(text) + v
		}
	}
	return text
}

func sep(text string) string {
	if text == "" {
		return ""
	}
	return " "
}
