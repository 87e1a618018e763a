// Command fake-kms-plugin is a KMS v2 plugin that misbehaves on command; see package fakeplugin.
package main

import "github.com/kmsharness/kmsharness/fakeplugin/cli"

func main() { cli.Run(cli.Options{}) }
