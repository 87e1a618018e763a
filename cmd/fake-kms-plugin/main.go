// Command fake-kms-plugin is a KMS v2 plugin that misbehaves on command; see package fakeplugin.
package main

import (
	"github.com/kmsharness/kmsharness/fakeplugin/cli"
	"github.com/kmsharness/kmsharness/internal/entry"
)

func main() { entry.Run(cli.Main) }
