// Package scenarios is the catalogue: one YAML file per behaviour in catalogue/, the Ginkgo suite that turns each file
// into a spec, and specs written in Go beside them for what YAML cannot say.
//
// To add a scenario, add a file; nothing else needs to know about it. The format is described in docs/authoring.md.
package scenarios

import "embed"

// files are the catalogue, so that a program carries it along.
//
//go:embed catalogue/*.yaml
var files embed.FS
