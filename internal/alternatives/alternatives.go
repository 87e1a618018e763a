// Package alternatives is the flag --alternatives of programs that use several API servers (package altsvc).
package alternatives

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/kmsharness/kmsharness/altsvc"
)

// AltSvc is the value of --connectivity with which a program uses alternatives.
const AltSvc = "altsvc"

// AddFlag registers --alternatives.
func AddFlag(f *pflag.FlagSet, list *[]string) {
	f.StringSliceVar(list, "alternatives", nil, "host:port of API servers, comma-separated, with --connectivity altsvc: used from the start, in addition to those that Alt-Svc advertises")
}

// Validate returns what is wrong with the flag's value, or nil.
func Validate(list []string, connectivity string) error {
	if len(list) > 0 && connectivity != AltSvc {
		return fmt.Errorf("--alternatives is for --connectivity %s: leave it out", AltSvc)
	}
	const anyOrigin = "localhost:6443" // its port is the default of the list's
	if _, err := altsvc.ParseStatic(list, anyOrigin); err != nil {
		return fmt.Errorf("--alternatives: %w", err)
	}
	return nil
}
