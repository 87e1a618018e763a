package hold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
	"github.com/kmsharness/kmsharness/harness/stall"
)

// Run runs the program until it ends by itself, or, when ctx ends, until it has stopped. It returns the exit code for the
// container. An error means that hold itself could not do its work.
func Run(ctx context.Context, o Options, stdout, stderr io.Writer) (code int, err error) {
	if err := adopt(); err != nil {
		return 0, err
	}
	j, err := openJournal(o.Journal)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, j.Err(), j.file.Close()) }()
	out, err := openOutput(o.Log, stdout, stderr)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.close()) }()
	l, err := endpoint.Listen(o.Control, controlMode)
	if err != nil {
		return 0, fmt.Errorf("--control: %w", err)
	}
	p := newProgram(o.command, out.stdout, out.stderr, j, markerOf(o.Control))
	p.spec.Env = o.Env
	if o.commandMissing() {
		p.settle(Stopped)
	}
	tell := func(text string) { fmt.Fprintln(stderr, "kmsharness-hold:", text) }
	return p.run(ctx, l, o.WaitFor, tell)
}

// run owns what goes on beside the program: the control API, the reaper, the watch for stalls and the wait for a URL.
func (p *program) run(ctx context.Context, l net.Listener, url string, tell func(string)) (code int, err error) {
	if err := p.restore(); err != nil {
		return 0, errors.Join(err, l.Close(), p.supervisor.Close(ctx))
	}
	// They go on while the program stops.
	all, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	group, beside := errgroup.WithContext(all)
	waiting, decided := context.WithCancel(beside)
	p.decided = decided
	group.Go(func() error { return httpjson.Serve(beside, l, handler(p)) })
	group.Go(func() error { p.reap(beside); return nil })
	group.Go(func() error { stall.Run(beside, p.stalled); return nil })
	group.Go(func() error { return p.first(waiting, url, tell) })
	select {
	case <-ctx.Done():
	case <-p.exited:
	case <-beside.Done(): // one of them failed: nobody could say any more what the program is to do
	}
	code, err = p.close()
	if s := p.State(); s.State == Exited {
		code = *s.ExitCode
	}
	end()
	return code, errors.Join(err, group.Wait(), p.supervisor.Close(context.WithoutCancel(ctx)))
}

// first starts the program for the first time, unless it is held or ctx ends before it may start.
func (p *program) first(ctx context.Context, url string, tell func(string)) error {
	if s := p.State().State; s != Waiting {
		tell("the program is held (" + s + ") since before this container; start it at the control socket")
		return nil
	}
	if url != "" {
		if err := waitFor(ctx, url, tell); err != nil {
			return nil
		}
	}
	return p.begin(context.WithoutCancel(ctx))
}
