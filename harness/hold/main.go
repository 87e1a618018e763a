package hold

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
)

// Exit codes of hold itself; every other one is the program's. 125 is what container engines use for a failure of
// their own.
const (
	exitUsage  = 2
	exitFailed = 125
)

// Main is the program kmsharness-hold.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := Parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "kmsharness-hold:", err)
		return exitUsage
	}
	code, err := Run(ctx, o, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "kmsharness-hold:", err)
		return exitFailed
	}
	return code
}
