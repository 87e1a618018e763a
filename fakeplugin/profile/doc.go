// Package profile is what makes a fake plugin behave as the plugin of one provider does: the shape of its key_id, whether a
// rotation shows in it, how long its calls take, and its typical failures with their texts and codes.
//
// A profile is a YAML file in data. Adding a provider is adding a file (docs/profiles.md): nothing else names them. What a
// profile does to a call is decided in fakeplugin/fault, what it does to a key_id in fakeplugin/plugin.
package profile
