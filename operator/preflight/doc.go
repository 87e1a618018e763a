// Package preflight checks a plugin before it is used: Status until it is ok, Encrypt, Decrypt, and a comparison of the
// decrypted text with the original.
//
// It has the calls and the requirements for their answers. Starting the plugin, the time of a check and the
// consequences of its result are decided by its callers (operator, operator/core). A result has the hash of the checked
// configuration and is valid for no other configuration.
package preflight
