package plugin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/harness/process"
)

// second is a client of another instance of the plugin: at the endpoint that the author names, or a process with a socket and a {state} of its own.
// The caller ends it. Where there is none, the check ends.
func (p *Plugin) second(ctx context.Context) (_ *client, end func()) {
	other := *p.client
	if other.at = p.secondAt; other.at.IsZero() {
		return p.startSecond(ctx, other)
	}
	other.conn = need(other.Dial())
	return &other, func() { _ = other.conn.Close() }
}

func (p *Plugin) startSecond(ctx context.Context, other client) (_ *client, end func()) {
	dir := need(os.MkdirTemp(p.dir, "second-"))
	state := filepath.Join(dir, "state")
	must(os.Mkdir(state, 0o700))
	other.at = need(endpoint.ParseUnix("unix://" + filepath.Join(dir, "kms.sock")))
	other.conn = need(other.Dial())
	o := &ownProcess{client: &other, supervisor: p.supervisor}
	o.spec = p.specWith(map[string]string{"endpoint": other.at.String(), "socket": other.at.Address, "state": state})
	if err := o.Start(ctx); err != nil {
		seen := o.seen(err)
		if o.Running() {
			_ = o.Kill(ctx)
		}
		_ = other.conn.Close()
		must(unsupported{"a second instance with a socket and a {state} of its own did not start: " + seen})
	}
	return &other, func() {
		_ = o.end(context.WithoutCancel(ctx))
		_ = other.conn.Close()
	}
}

// oneKeyIDOneKey compares two instances. Until they encrypt, errors are tried again: the KMS may need time after a start.
func oneKeyIDOneKey(ctx context.Context, p *Plugin) error {
	other, end := p.second(ctx)
	defer end()
	var theirs Sealed
	if err := other.until(ctx, retry, p.timing.Start, func(ctx context.Context) (err error) {
		theirs, err = other.Seal(ctx)
		return err
	}); err != nil {
		return unsupported{"a second instance does not encrypt: " + clip(err.Error())}
	}
	ours := need(p.Seal(ctx))
	if ours.KeyId != theirs.KeyId {
		p.Measure("the key_ids of two instances differ")
		return nil
	}
	const what = "Decrypt by another instance of the plugin, which has the same key_id"
	must(other.Unseal(ctx, ours, what))
	return p.Unseal(ctx, theirs, what)
}

// promptEnd is how long a successor waits for the end of the process that got SIGTERM. One that ends by then overlaps with none.
const promptEnd = 500 * time.Millisecond

// handOver starts a successor while the process that got SIGTERM ends. A successor that ends because its predecessor still serves is started again
// afterwards, as a kubelet does.
func handOver(ctx context.Context, p *Plugin) error {
	old, ended := p.now, make(chan error, 1)
	go func() { ended <- old.Stop(ctx) }()
	if _, over := p.Poll(ctx, 5*time.Millisecond, promptEnd, func(context.Context) bool { return !p.Running() }); over {
		p.Measure("it ended before its successor started")
	}
	launched := p.Launch(ctx)
	if err := <-ended; err != nil {
		return fmt.Errorf("stop the plugin: %w", err)
	}
	if launched != nil {
		return launched
	}
	err := p.WaitReady(ctx)
	if err == nil {
		return sealsAgain(ctx, p)
	}
	if how, over := p.ended(); over {
		p.Measure("the successor did not start while its predecessor ended: %s", how)
		return startAfter(ctx, p, "SIGTERM")
	}
	_ = p.revive(ctx)
	return found("start at the same path while the process that got SIGTERM ends", fmt.Sprintf("the successor runs, but at its path: %v", err), "Status is answered by the successor")
}

// failedStartTime bounds a start that is to fail.
const failedStartTime = 5 * time.Second

// failedStart starts the plugin once more in ways that may fail. Where the second process ends, the first one must still serve.
func failedStart(ctx context.Context, p *Plugin) error {
	failed := 0
	for _, s := range p.failingStarts() {
		how, over := p.tryStart(ctx, s.spec)
		served := p.reachable(ctx)
		switch {
		case served != nil:
			_ = p.revive(ctx)
			if over {
				return found("a second start "+s.what, fmt.Sprintf("%s; then, of the process that served before: %s", how, show(served)), "the process that served before still does")
			}
		case over:
			failed++
			p.Measure("%s %s", s.what, how)
		}
	}
	if failed == 0 {
		return unsupported{"no second start of the plugin failed: it was started with a {state} that is a file, one with damaged files, and an unknown flag"}
	}
	return nil
}

// start is a start of the plugin that may fail.
type start struct {
	what string
	spec process.Spec
}

// failingStarts are with a {state} that cannot be used, and with a flag that no plugin knows.
func (p *Plugin) failingStarts() []start {
	dir := need(os.MkdirTemp(p.dir, "failing-"))
	file, damaged, empty := filepath.Join(dir, "file"), filepath.Join(dir, "damaged"), filepath.Join(dir, "empty")
	must(writeDamaged(file))
	for _, folder := range []string{damaged, empty} {
		must(os.Mkdir(folder, 0o700))
	}
	for _, e := range need(os.ReadDir(p.ownProcess.values["state"])) {
		if e.Type().IsRegular() {
			must(writeDamaged(filepath.Join(damaged, e.Name())))
		}
	}
	with := func(state string, more ...string) process.Spec {
		return p.specWith(map[string]string{"state": state}, more...)
	}
	flag := start{"with an unknown flag", with(empty, "--kmsharness-no-such-flag")}
	if !p.template.Has("state") {
		return []start{flag}
	}
	return []start{{"with a file as {state}", with(file)}, {"with a {state} whose files are damaged", with(damaged)}, flag}
}

func writeDamaged(file string) error { return os.WriteFile(file, []byte("damaged\n"), 0o600) }

// tryStart starts a process of the plugin and reports whether it ended by itself. Otherwise it ends it.
func (p *Plugin) tryStart(ctx context.Context, spec process.Spec) (how string, over bool) {
	spec.StopTimeout = failedStartTime
	now, err := p.supervisor.Start(ctx, spec)
	if err != nil {
		must(fmt.Errorf("start the plugin: %w", err))
	}
	timer := time.NewTimer(failedStartTime)
	defer timer.Stop()
	select {
	case <-now.Done():
		exit, _ := now.Exit()
		return fmt.Sprintf("the second process ended: %v", exit), true
	case <-timer.C:
	case <-ctx.Done():
	}
	must(now.Stop(ctx))
	return "", false
}

// reachable is nil if a new connection to the plugin's path is served.
func (p *Plugin) reachable(ctx context.Context) error {
	if err := p.connect(ctx); err != nil {
		return err
	}
	if _, err := p.statusOnNew(ctx); err != nil && gone(err) {
		return err
	}
	return nil
}
