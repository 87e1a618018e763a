// Command kmsharness-tests-ext is an extension of openshift-tests; see package testsext.
package main

import (
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/bubble"
	"github.com/kmsharness/kmsharness/harness/testsext"
	"github.com/kmsharness/kmsharness/internal/entry"
)

// What runs in virtual time needs a program that began as tests do.
func main() { bubble.Main(func() { entry.Run(testsext.Main) }) }
