// Package keyring encrypts with AES-256-GCM under versioned KEKs. Every earlier KEK can decrypt, and no id is given to
// two KEKs. A keyring is a value in memory: access rules, wire protocol and storage are in other packages.
package keyring
