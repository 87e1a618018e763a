// Package plugin certifies KMS v2 plugins. It calls a plugin on its unix socket as kube-apiserver does, and needs neither a cluster nor the
// plugin's source.
//
//	report, err := plugin.Run(ctx, plugin.Subject{Endpoint: "unix:///run/kms.sock"}, plugin.Options{})
//
// A check is a value with a stable id (Catalogue lists all). Some checks need more than the socket: a command that starts the plugin, hooks that
// break and rotate the KMS behind it, or its log. Without it they are not supported, which is not a pass.
//
// Package suite embeds the checks in a Ginkgo suite. The command is "kmsharness conform plugin".
package plugin
