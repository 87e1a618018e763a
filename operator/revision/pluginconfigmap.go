package revision

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/operator/config"
)

// Data of a plugin configuration.
const (
	containersKey = "plugin-config.yaml"
	keyIDKey      = "key-id" // of the plugin that writes, as the seed has it: what the KMS calls the key
)

// containerPrefix begins the names of plugin containers: kms-plugin-{keyID}.
const containerPrefix = "kms-plugin-"

// pluginContainers are the parts of containers that depend on the configuration. The rest is the same for all providers.
type pluginContainers struct {
	Containers []corev1.Container `json:"containers"`
}

// contentVariable is the variable with the hash of the content of the credentials, if there are any: a pod with other credentials is another pod.
const contentVariable = "KMS_CREDENTIALS_HASH"

// PluginConfigMap is a revision as an object. Sockets are below dir.
func PluginConfigMap(c Component, r PluginConfig, dir string) (*corev1.ConfigMap, error) {
	m := &corev1.ConfigMap{ObjectMeta: numbered(c, KindPluginConfig, PluginConfigName(c, r.Revision), r.Revision)}
	all := pluginContainers{Containers: []corev1.Container{}}
	for _, p := range r.Plugins {
		all.Containers = append(all.Containers, container(p, Socket(dir, p.KeyID)))
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	m.Data = map[string]string{containersKey: string(text)}
	if len(r.Plugins) > 0 {
		m.Data[keyIDKey] = r.Plugins[0].Config.KeyName()
	}
	return m, nil
}

// container tells a plugin its settings by flags named after them, whichever provider it is.
func container(p Plugin, socket string) corev1.Container {
	args := []string{"--provider=" + p.Config.Provider, "--listen=" + socket}
	settings := p.Config.Settings()
	for _, path := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "--"+path+"="+settings[path])
	}
	c := corev1.Container{Name: containerPrefix + fmt.Sprint(p.KeyID), Image: p.Config.Image, Args: args}
	if p.Config.Content != "" {
		c.Env = []corev1.EnvVar{{Name: contentVariable, Value: p.Config.Content}}
	}
	return c
}

// ReadPluginConfig is the opposite of PluginConfigMap.
func ReadPluginConfig(m *corev1.ConfigMap) (PluginConfig, error) {
	n, err := identify(m.ObjectMeta, KindPluginConfig, PluginConfigName)
	if err != nil {
		return PluginConfig{}, err
	}
	r := PluginConfig{Revision: n}
	var all pluginContainers
	if err := yaml.UnmarshalStrict([]byte(m.Data[containersKey]), &all); err != nil {
		return PluginConfig{}, fmt.Errorf("%s: data[%s]: %w", m.Name, containersKey, err)
	}
	for i, one := range all.Containers {
		p, err := pluginOf(one)
		if err == nil && r.Has(p.KeyID) {
			err = fmt.Errorf("there are two of %s", one.Name)
		}
		if err != nil {
			return PluginConfig{}, fmt.Errorf("%s: data[%s]: containers[%d]: %w", m.Name, containersKey, i, err)
		}
		r.Plugins = append(r.Plugins, p)
	}
	return r, nil
}

func pluginOf(w corev1.Container) (Plugin, error) {
	text, ok := strings.CutPrefix(w.Name, containerPrefix)
	if !ok {
		return Plugin{}, fmt.Errorf("name %q: expected %sKEYID", w.Name, containerPrefix)
	}
	id, err := ParseKeyID(text)
	if err != nil {
		return Plugin{}, err
	}
	provider, settings := "", map[string]string{}
	for _, arg := range w.Args {
		name, value, ok := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		switch {
		case !ok || !strings.HasPrefix(arg, "--"):
			return Plugin{}, fmt.Errorf("args: %q: expected --NAME=VALUE", arg)
		case name == "provider":
			provider = value
		case name != "listen":
			settings[name] = value
		}
	}
	p, err := config.NewPlugin(provider, w.Image, settings)
	for _, v := range w.Env {
		if v.Name != contentVariable {
			return Plugin{}, fmt.Errorf("env: %q: expected %s", v.Name, contentVariable)
		}
		p.Content = v.Value
	}
	return Plugin{KeyID: id, Config: p}, err
}
