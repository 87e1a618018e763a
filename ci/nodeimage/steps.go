package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/process"
)

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

// run runs a program, tells its last line of output now and then, and shows the end of it if it fails.
func (s *steps) run(ctx context.Context, env []string, path string, args ...string) error {
	name := filepath.Base(path)
	log := filepath.Join(s.logs, name+".log")
	return process.Run(ctx, process.Spec{Name: name, Path: path, Args: args, Env: env, LogFile: log}, func() {
		text, _ := os.ReadFile(log) // what cannot be read is not shown
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		s.say("[%v]   %.100s", since(s.begin), cmp.Or(lines[len(lines)-1], "still running"))
	})
}
