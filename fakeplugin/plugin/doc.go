// Package plugin is the honest KMS v2 plugin: it answers Status from what it last saw of the remote KMS, and passes
// Encrypt and Decrypt on to it with the uid of the request. It notices a rotation with a lag of its own. What makes
// it misbehave, and the socket on which it serves, are not here.
package plugin
