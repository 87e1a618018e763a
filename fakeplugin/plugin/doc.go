// Package plugin is the correct KMS v2 plugin: it answers Status from its last poll of the remote KMS, and passes
// Encrypt and Decrypt to the remote KMS with the uid of the request. It notices a rotation with a configured lag.
// Faults and the socket are in packages fault and server.
package plugin
