// Package entry is what the main functions of all programs share: signals, and the help and the exit code of programs without commands. It has no
// dependencies, because some programs are copied into every container.
package entry

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes of programs without commands.
const (
	ExitFailed = 1 // could not run
	ExitUsage  = 2 // bad command line
)

// Run is the whole of a program. The context of main ends at the first SIGINT or SIGTERM; a second one ends the program at once.
func Run(main func(ctx context.Context, args []string, stdout, stderr io.Writer) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(main(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Parse reads a command line without the program's name. For --help it prints usage and flags to out, and returns flag.ErrHelp.
func Parse(f *flag.FlagSet, usage string, args []string, out io.Writer) error {
	f.SetOutput(io.Discard) // the caller prints errors, in one line
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, usage)
		f.SetOutput(out)
		f.PrintDefaults()
	}
	return err
}

// Exit prints an error, if there is one, and returns the exit code: code for an error, and 0 for none and for flag.ErrHelp.
func Exit(stderr io.Writer, program string, code int, err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintf(stderr, "%s: %v\n", program, err)
	return code
}
