// Package mutation reads the flag --mutation of the mutants, and leaves all others to the program that was mutated. It also has the mistakes that are
// made in a process as well as in virtual time.
package mutation

import (
	"fmt"
	"slices"
	"strings"
)

const flag = "--mutation"

// Cut takes --mutation NAME or --mutation=NAME out of args. The name must be one of known.
func Cut(args []string, known ...string) (name string, rest []string, err error) {
	for i := 0; i < len(args); i++ {
		value, joined := strings.CutPrefix(args[i], flag+"=")
		switch {
		case joined:
			name = value
		case args[i] == flag && i+1 < len(args):
			i++
			name = args[i]
		default:
			rest = append(rest, args[i])
		}
	}
	if !slices.Contains(known, name) {
		return "", nil, fmt.Errorf("%s %q: expected one of %s", flag, name, strings.Join(known, ", "))
	}
	return name, rest, nil
}
