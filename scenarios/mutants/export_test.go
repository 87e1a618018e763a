package mutants

import "github.com/kmsharness/kmsharness/harness/cluster/virtual"

// Managed is correct reporters with field managers of other names.
func Managed(name func(node string) string) func() virtual.Options {
	return reporting(func(r *startingReporter) error {
		changeRequests(&r.Host, patched(func(o *outgoing) { o.FieldManager = name(r.Node) }))
		return nil
	})
}
