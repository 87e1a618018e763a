// Package preflight checks a plugin before anything depends on it: Status until it is ok, Encrypt, Decrypt, and whether what comes back
// is what went in.
//
// What lives here: the calls and what their answers must be. What does not: who starts the plugin, when a check is made, and what follows
// from its result (operator/core). A result carries the hash of the configuration that was checked, and says nothing about any
// other.
package preflight
