// Package cli is the kmsharness command: run and check scenarios, run the whole catalogue, keep an environment up to
// play with, drive a fake plugin. It only wires; what a command does lives in the package that it is about.
//
// Exit codes, the same for every command: 0 passed, 1 failed, 2 could not run (bad command line, scenario or
// environment), inconclusive or interrupted.
package cli
