package program

import (
	"errors"
	"fmt"
	"io"
)

// Exit codes of programs that judge.
const (
	ExitPassed      = 0
	ExitFailed      = 1 // something was judged and did not hold
	ExitCouldNotRun = 2 // nothing can be said about the system under test
)

// ExitError carries an exit code through cobra. An empty Text has been printed already.
type ExitError struct {
	Code int
	Text string
}

func (e *ExitError) Error() string { return e.Text }

// Failed ends a command whose verdict has been printed.
func Failed() error { return &ExitError{Code: ExitFailed} }

// ExitCode of what a command returned; everything that is not a verdict means that it could not run.
func ExitCode(err error) int {
	var e *ExitError
	switch {
	case err == nil:
		return ExitPassed
	case errors.As(err, &e):
		return e.Code
	default:
		return ExitCouldNotRun
	}
}

// Exit prints an error on one line, and returns the exit code.
func Exit(stderr io.Writer, program string, err error) int {
	if err != nil && err.Error() != "" {
		fmt.Fprintf(stderr, "%s: %v\n", program, err)
	}
	return ExitCode(err)
}
