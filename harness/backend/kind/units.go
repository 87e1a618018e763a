package kind

import (
	"context"
	"fmt"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
)

// unitOf makes units for a program of the system under test in a container of a node.
func (p *plane) unitOf(dir, name string) func(history.Process, func(context.Context) (live.Command, error)) live.Unit {
	return func(identity history.Process, command func(context.Context) (live.Command, error)) live.Unit {
		u, err := newHeld(dir, name)
		if err != nil {
			return broken{err}
		}
		u.command = wordsOf(command)
		if err := p.follow(dir, name, identity); err != nil {
			return broken{err}
		}
		return u
	}
}

// wordsOf are the words that hold runs.
func wordsOf(command func(context.Context) (live.Command, error)) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		c, err := command(ctx)
		return append([]string{inImage(c.Program)}, c.Args...), err
	}
}

// contained returns an error if the image of a program of this project does not have another one.
func contained(program, replaced string) error {
	if inImage(program) == inImage(replaced) {
		return nil
	}
	return fmt.Errorf("it would run in this project's image, which has %s only: expected that, or for a reporter of your own --reporter-image", inImage(replaced))
}

// inImage is where the images of this project have their program.
func inImage(program string) string {
	if program == "" || program[0] == '/' {
		return program
	}
	return "/" + program
}
