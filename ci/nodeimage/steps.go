package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/process"
)

// progressEvery is how often a step that takes minutes says that it goes on.
const progressEvery = 5 * time.Second

// steps runs one thing after another and says how long each took.
type steps struct {
	out   io.Writer
	begin time.Time
	logs  string // a folder for what the scripts print
}

func (s *steps) say(format string, args ...any) {
	fmt.Fprintf(s.out, "node-image: %s\n", fmt.Sprintf(format, args...))
}

func since(t time.Time) time.Duration { return time.Since(t).Round(time.Second) }

// step runs one of them; an error names it.
func (s *steps) step(name string, do func() error) error {
	begin := time.Now()
	s.say("[%v] %s", since(s.begin), name)
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s.say("[%v] %s: done in %v", since(s.begin), name, since(begin))
	return nil
}

// run runs a program, tells its last line of output now and then, and shows the end of it if it fails. It and its children die
// with this process.
func (s *steps) run(ctx context.Context, env []string, path string, args ...string) error {
	supervisor := process.New(process.Options{})
	defer supervisor.Close(ctx) //nolint:errcheck // the program's own result matters
	name := filepath.Base(path)
	log := filepath.Join(s.logs, name+".log")
	p, err := supervisor.Start(ctx, process.Spec{Name: name, Path: path, Args: args, Env: env, LogFile: log})
	if err != nil {
		return err
	}
	if err := s.watch(ctx, p); err != nil {
		return errors.Join(err, p.Kill())
	}
	if exit, _ := p.Exit(); exit.Code != 0 {
		return fmt.Errorf("%s: %v; the end of %s:\n%s", name, exit, log, assets.LastLines(log, 15))
	}
	return nil
}

func (s *steps) watch(ctx context.Context, p *process.Process) error {
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-p.Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			s.say("[%v]   %.100s", since(s.begin), cmp.Or(assets.LastLines(p.LogFile(), 1), "still running"))
		}
	}
}
