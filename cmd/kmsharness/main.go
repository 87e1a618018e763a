// Command kmsharness tests KMS v2 encryption health in Kubernetes and OpenShift control planes; see package cli.
package main

import (
	"github.com/kmsharness/kmsharness/harness/cli"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/bubble"
	"github.com/kmsharness/kmsharness/internal/entry"
)

// What runs in virtual time needs a program that began as tests do.
func main() { bubble.Main(func() { entry.Run(cli.Main) }) }
