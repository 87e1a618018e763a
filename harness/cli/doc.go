// Package cli is the kmsharness command: it runs and checks scenarios, runs the catalogue, keeps an environment for
// experiments, and controls a fake plugin. It connects the packages that implement the commands.
//
// Exit codes are the same for every command: 0 passed, 1 failed, 2 could not run (bad command line, scenario or
// environment), inconclusive or interrupted.
package cli
