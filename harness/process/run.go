package process

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// progressEvery is how often a program that takes minutes says that it goes on.
const progressEvery = 5 * time.Second

// Run runs a program until it ends, and calls progress now and then. An error has the end of its log. Neither the program nor its children outlive Run.
func Run(ctx context.Context, spec Spec, progress func()) error {
	supervisor := New(Options{})
	defer supervisor.Close(ctx) //nolint:errcheck // the program's own result matters
	p, err := supervisor.Start(ctx, spec)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-p.Done():
			if exit, _ := p.Exit(); exit.Code != 0 {
				return fmt.Errorf("%s: %v; the end of %s:\n%s", spec.Name, exit, spec.LogFile, tail(spec.LogFile, tailBytes))
			}
			return nil
		case <-ctx.Done():
			return errors.Join(ctx.Err(), p.Kill())
		case <-ticker.C:
			progress()
		}
	}
}
