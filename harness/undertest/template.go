package undertest

import (
	"path/filepath"
	"strings"

	"github.com/kmsharness/kmsharness/internal/command"
)

// Placeholders of a plugin's command and of its hooks.
const (
	PlaceSocket   = "socket"   // path of the plugin's own socket
	PlaceEndpoint = "endpoint" // the same as unix:///PATH
	PlaceNode     = "node"
	PlaceKeyID    = "keyID"
	PlaceState    = "state"  // folder of this plugin instance, which stays for all its processes
	PlaceShared   = "shared" // folder of the plugins of one keyID on all nodes
)

// PluginPlaceholders are what the command template of a plugin and of its hooks may contain in a scenario.
func PluginPlaceholders() []string {
	return []string{PlaceSocket, PlaceEndpoint, PlaceNode, PlaceKeyID, PlaceState, PlaceShared}
}

// Placeholders are what the command template of a reporter, an aggregator or an operator may contain.
func Placeholders() []string {
	return []string{"sockets", "node", "kubeconfig", "interval", "jitter", "readTimeout", "writeTimeout", "metricsAddress",
		"contract", "operator", "version", "podImage", "connectivity", "alternatives", "instance", "leaderElect", "degradedInertia", "clusterOperator", "aggregatorProfile", "encrypt", "beforeKMS",
		"migrator", "podName", "podNamespace", "configHash", "callTimeout", "checkTimeout",
		"publish", "aggregators", "streamAddress", "streamCertificate", "streamKey", "streamClientCA"}
}

// placeholders of a field, by its tag template.
func placeholders(tag string) []string {
	if tag == "plugin" {
		return PluginPlaceholders()
	}
	return Placeholders()
}

// ProgramOf is the program of a command template, its first word; empty for an empty template.
func ProgramOf(template string) string {
	if words, err := command.Split(template); err == nil && len(words) > 0 {
		return words[0]
	}
	return "" // Validate reports a mistake
}

// NameOf is the name of the program of a template. Of one that is started by env, as in "env A=1 program", it is not env.
func NameOf(template string) string {
	words, _ := command.Split(template) // Validate reports a mistake
	if len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) == "env" {
		for _, word := range words[1:] {
			if strings.HasPrefix(word, "-") { // an option
				break
			}
			if !strings.Contains(word, "=") {
				return filepath.Base(word)
			}
		}
	}
	return filepath.Base(words[0])
}
