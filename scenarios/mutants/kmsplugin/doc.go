// Package kmsplugin has KMS v2 plugins that are wrong on purpose. Each must be caught by the check of package conformance/plugin that it names, and by
// no other than those that it lists. Reference is the correct plugin that most of them change; the others are the fake plugin with a fault.
package kmsplugin
