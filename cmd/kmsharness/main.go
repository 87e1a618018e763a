// Command kmsharness tests KMS v2 encryption health in Kubernetes and OpenShift control planes; see package cli.
package main

import (
	"github.com/kmsharness/kmsharness/harness/cli"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

func main() { cli.Run(standard.Extensions{}) }
