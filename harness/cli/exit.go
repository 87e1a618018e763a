package cli

import (
	"errors"
	"fmt"
)

// Exit codes of every command.
const (
	ExitPassed      = 0
	ExitFailed      = 1 // something was judged and did not hold
	ExitCouldNotRun = 2 // nothing can be said about the system under test
)

// exitError carries an exit code through cobra. An empty text has been told already.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// failed ends a command whose verdict has been printed.
func failed() error { return &exitError{code: ExitFailed} }

// exitCode of what a command returned; everything that is not a verdict means that it could not run.
func exitCode(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return ExitPassed
	case errors.As(err, &e):
		return e.code
	default:
		return ExitCouldNotRun
	}
}

// usage is a mistake on the command line, told in one line.
func usage(format string, args ...any) error {
	return &exitError{code: ExitCouldNotRun, text: fmt.Sprintf(format, args...)}
}
