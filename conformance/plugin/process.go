package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/connectivity"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/internal/command"
	"github.com/kmsharness/kmsharness/internal/host"
)

// ownProcess is a plugin that the suite starts.
type ownProcess struct {
	supervisor *process.Supervisor
	spec       process.Spec
	now        *process.Process // nil: never started
}

func newOwnProcess(text string, values map[string]string, logFile string, stop time.Duration) (*ownProcess, error) {
	t, err := command.Parse(text, commandPlaceholders...)
	if err != nil {
		return nil, err
	}
	name, args := t.Fill(values)
	program, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("command %q: %w", text, err)
	}
	return &ownProcess{
		supervisor: process.New(process.Options{}),
		spec:       process.Spec{Name: "plugin", Path: program, Args: args, LogFile: logFile, StopTimeout: stop},
	}, nil
}

// Start starts the plugin and waits until it answers Status. It needs the capability Command.
func (p *Plugin) Start(ctx context.Context) error {
	if err := p.Launch(ctx); err != nil {
		return err
	}
	return p.WaitReady(ctx)
}

// Launch starts the plugin and does not wait. It needs the capability Command.
func (p *Plugin) Launch(ctx context.Context) error {
	now, err := p.owned.supervisor.Start(ctx, p.owned.spec)
	if err != nil {
		return fmt.Errorf("start the plugin: %w", err)
	}
	p.owned.now = now
	p.restarts++
	return nil
}

// WaitReady waits until the plugin that the suite started answers Status, if only with an error of its own. It needs the capability Command.
func (p *Plugin) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.timing.Start)
	defer cancel()
	p.conn.ResetConnectBackoff()
	began, next := time.Now(), firstNotice
	err := p.owned.now.WaitReady(ctx, 20*time.Millisecond, func(ctx context.Context) error {
		if waited := time.Since(began); waited >= next && p.waiting != nil {
			p.waiting(fmt.Sprintf("waiting for the plugin at %s: %v of at most %v; %s", p.at, waited.Round(time.Second), p.timing.Start, p.lastWords()))
			next += noticeEvery
		}
		ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
		defer cancel()
		if err := p.connect(ctx); err != nil {
			return err
		}
		p.conn.ResetConnectBackoff()
		_, err := p.Status(ctx)
		p.answered = p.answered || err == nil
		if err != nil && gone(err) {
			return err
		}
		return nil
	})
	if err != nil && ctx.Err() != nil {
		p.traffic.late.Store(true)
	}
	return err
}

// A plugin that does not listen is reported after firstNotice and then at each noticeEvery.
const (
	firstNotice = 2 * time.Second
	noticeEvery = 5 * time.Second
)

// lastWords are the end of the output of a plugin that the suite started, on one line without control characters.
func (p *Plugin) lastWords() string {
	text, err := os.ReadFile(p.owned.spec.LogFile)
	if err != nil {
		return err.Error()
	}
	text = text[max(0, len(text)-maxShown):]
	words := strings.FieldsFunc(strings.ToValidUTF8(string(text), ""), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	if len(words) == 0 {
		return "it has no output"
	}
	return "its last output: " + strings.Join(words, " ")
}

// revive kills the plugin if it runs, removes the socket file if nothing listens at it, and starts the plugin. It needs the capability Command.
func (p *Plugin) revive(ctx context.Context) error {
	if p.Running() {
		if err := p.Kill(ctx); err != nil {
			return err
		}
	}
	if p.at.IsFile() {
		if err := endpoint.RemoveStale(host.Host{}, p.at.Address); err != nil {
			return err
		}
	}
	return p.Start(ctx)
}

// connect opens and closes a connection to the socket.
func (p *Plugin) connect(ctx context.Context) error {
	c, err := p.at.Dial(ctx, host.Host{})
	if err != nil {
		return err
	}
	return c.Close()
}

// Terminate sends SIGTERM and waits for the end. It returns how the process ended: Forced if it needed SIGKILL. It needs the capability Command.
func (p *Plugin) Terminate(ctx context.Context) (process.Exit, error) {
	err := p.owned.now.Stop(ctx)
	exit, ended := p.owned.now.Exit()
	if !ended {
		return exit, fmt.Errorf("stop the plugin: %w", err)
	}
	if exit.Forced {
		p.traffic.late.Store(true)
	}
	p.disconnected(ctx)
	return exit, nil
}

// disconnected waits until the connection of the checks knows that its process has ended. Until then a call is sent to the ended process, and fails
// in place of waiting for the next one.
func (p *Plugin) disconnected(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
	defer cancel()
	for p.conn.GetState() == connectivity.Ready && p.conn.WaitForStateChange(ctx, connectivity.Ready) {
	}
}

// Kill sends SIGKILL and waits for the end. It needs the capability Command.
func (p *Plugin) Kill(ctx context.Context) error {
	if err := p.owned.now.Kill(); err != nil {
		return fmt.Errorf("kill the plugin: %w", err)
	}
	select {
	case <-p.owned.now.Done():
		p.disconnected(ctx)
		return nil
	case <-ctx.Done():
		return fmt.Errorf("kill the plugin: %w", ctx.Err())
	}
}

// Running reports whether the process that the suite started runs. Without the capability Command it is false.
func (p *Plugin) Running() bool {
	if p.owned == nil || p.owned.now == nil {
		return false
	}
	_, ended := p.ended()
	return !ended
}

// ended reports whether the process that the suite started has ended, and how. Its output is left out: it may have secrets.
func (p *Plugin) ended() (how string, ended bool) {
	if p.owned == nil || p.owned.now == nil {
		return "", false
	}
	exit, ended := p.owned.now.Exit()
	return fmt.Sprintf("the process ended: %v", exit), ended
}

// PID is the process that accepts connections at the socket, as the kernel knows it (SO_PEERCRED).
func (p *Plugin) PID(ctx context.Context) (int, error) {
	c, err := p.at.Dial(ctx, host.Host{})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	sc, ok := c.(syscall.Conn)
	if !ok {
		return 0, errors.New("the connection has no descriptor")
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) { cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, credErr
	}
	if cred.Pid <= 0 { // the process is in another namespace
		return 0, errors.New("the process of the plugin is not visible here")
	}
	return int(cred.Pid), nil
}

// readableProcess reports whether /proc shows the plugin's memory and descriptors.
func (p *Plugin) readableProcess(ctx context.Context) bool {
	pid, err := p.PID(ctx)
	if err != nil || pid == os.Getpid() {
		return false
	}
	_, err = os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return err == nil
}
