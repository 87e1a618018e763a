// Package keyring encrypts with AES-256-GCM under versioned KEKs. Every KEK of the past decrypts, and a KEK's id is
// never given out twice. It is a value in memory; who may use it, over which wire and where it is kept is not
// decided here.
package keyring
