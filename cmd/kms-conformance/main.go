// Command kms-conformance certifies KMS v2 plugins, without a cluster; see package command.
package main

import (
	"github.com/kmsharness/kmsharness/conformance/command"
	"github.com/kmsharness/kmsharness/internal/entry"
)

func main() { entry.Run(command.Main) }
