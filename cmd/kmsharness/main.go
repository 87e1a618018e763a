// Command kmsharness tests KMS v2 encryption health in Kubernetes and OpenShift control planes; see package cli.
package main

import (
	"github.com/kmsharness/kmsharness/harness/cli"
	"github.com/kmsharness/kmsharness/internal/entry"
)

func main() { entry.Run(cli.Main) }
