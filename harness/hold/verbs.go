package hold

import (
	"context"
	"net/http"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
	"github.com/kmsharness/kmsharness/harness/process"
)

// DefaultGrace between SIGTERM and SIGKILL is that of the local backend.
const DefaultGrace = process.DefaultStopTimeout

// pauseLimit bounds the wait for a process to stand still: only one in uninterruptible I/O takes longer than an instant.
const pauseLimit = 5 * time.Second

// conflict is the answer to a verb that makes no sense in this state.
func conflict(format string, args ...any) error {
	return httpjson.Errorf(http.StatusConflict, format, args...)
}

// start starts the program unless it runs. It does not wait for a URL: who starts a program by hand wants it now.
func (p *program) start(ctx context.Context) error {
	p.forking.Lock()
	defer p.forking.Unlock()
	switch s := p.State(); {
	case p.closing || s.State == Exited:
		return conflict("start: the container is about to end; ask again when the next one runs")
	case s.State == Paused:
		return conflict("start: the program is paused; resume it, or stop it first")
	case s.State == Running:
		return nil
	}
	if err := p.launch(ctx); err != nil {
		return err
	}
	return p.held.clear()
}

// stop ends the program with SIGTERM, after the grace with SIGKILL, and keeps it down.
func (p *program) stop(ctx context.Context, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	return p.hold(Stopped, func(current *process.Process) error { return current.Stop(ctx) })
}

// kill ends the program with SIGKILL and keeps it down.
func (p *program) kill() error { return p.hold(Killed, (*process.Process).Kill) }

// hold ends the program, whatever it is doing, and notes first that it stays down: the container may not live to note
// it afterwards. A program that is down already keeps the word for how it ended.
func (p *program) hold(state string, end func(*process.Process) error) error {
	p.forking.Lock()
	current, now := p.current, p.State()
	if now.State == Stopped || now.State == Killed {
		p.forking.Unlock()
		return nil
	}
	err := p.held.set(state)
	if err == nil && now.State == Waiting {
		p.settle(state)
	}
	p.forking.Unlock()
	if err != nil || current == nil {
		return err
	}
	return end(current)
}

// pause freezes the program and its children.
func (p *program) pause(ctx context.Context) error {
	if s := p.State(); !s.alive() {
		return conflict("pause: the program is %s; start it first", s.State)
	}
	ctx, cancel := context.WithTimeout(ctx, pauseLimit)
	defer cancel()
	return p.process().Pause(ctx)
}

// resume lets a paused program continue.
func (p *program) resume(context.Context) error {
	if s := p.State(); !s.alive() {
		return conflict("resume: the program is %s; start it first", s.State)
	}
	return p.process().Resume()
}
