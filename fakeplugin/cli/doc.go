// Package cli is the command line of the fake plugin: serve a plugin, serve the remote KMS behind it, and verbs that drive
// a plugin which runs, through its control API. `fake-kms-plugin` has all of them, `kmsharness plugin` the verbs.
//
// What the commands do lives in the packages that they are about.
package cli
