// Package profile makes a fake plugin behave like the plugin of one provider: the form of its key_id, whether a
// rotation changes the key_id, the duration of its calls, and its typical failures with their texts and codes.
//
// A profile is a YAML file in data. To add one, add a file (docs/profiles.md). Package fault applies a profile to a
// call, package plugin to a key_id.
package profile
