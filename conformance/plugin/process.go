package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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

// ownProcess starts and ends the plugin, if the subject has a command.
type ownProcess struct {
	*client
	supervisor *process.Supervisor // nil: the suite does not start the plugin
	template   command.Template
	values     map[string]string // of its placeholders
	spec       process.Spec
	now        *process.Process // nil: never started
	// restarts counts how often the suite started the plugin.
	restarts int
	// answered reports whether Status has answered after some start.
	answered bool
	// waiting receives a line while the plugin does not listen.
	waiting func(string)
}

// command makes the suite start the plugin, whose output goes to a file.
func (o *ownProcess) command(text string, values map[string]string, logFile string) error {
	t, err := command.Parse(text, commandPlaceholders...)
	if err != nil {
		return err
	}
	name, args := t.Fill(values)
	program, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("command %q: %w", text, err)
	}
	o.supervisor, o.template, o.values = process.New(process.Options{}), t, values
	o.spec = process.Spec{Name: "plugin", Path: program, Args: args, LogFile: logFile, StopTimeout: o.timing.Stop}
	return nil
}

// specWith is the process with other values of placeholders and with more arguments.
func (o *ownProcess) specWith(values map[string]string, more ...string) process.Spec {
	all := maps.Clone(o.values)
	maps.Copy(all, values)
	spec := o.spec
	_, args := o.template.Fill(all)
	spec.Args = append(args, more...)
	return spec
}

// owned reports whether the suite starts the plugin.
func (o *ownProcess) owned() bool { return o.supervisor != nil }

// Start starts the plugin and waits until it answers Status. It needs the capability Command.
func (o *ownProcess) Start(ctx context.Context) error {
	if err := o.Launch(ctx); err != nil {
		return err
	}
	return o.WaitReady(ctx)
}

// Launch starts the plugin and does not wait. It needs the capability Command.
func (o *ownProcess) Launch(ctx context.Context) error {
	now, err := o.supervisor.Start(ctx, o.spec)
	if err != nil {
		return fmt.Errorf("start the plugin: %w", err)
	}
	o.now = now
	o.restarts++
	return nil
}

// WaitReady waits until the plugin that the suite started answers Status, if only with an error of its own. It needs the capability Command.
func (o *ownProcess) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, o.timing.Start)
	defer cancel()
	o.conn.ResetConnectBackoff()
	began, next := time.Now(), firstNotice
	err := o.now.WaitReady(ctx, 20*time.Millisecond, func(ctx context.Context) error {
		if waited := time.Since(began); waited >= next && o.waiting != nil {
			o.waiting(fmt.Sprintf("waiting for the plugin at %s: %v of at most %v; %s", o.at, waited.Round(time.Second), o.timing.Start, o.lastWords()))
			next += noticeEvery
		}
		ctx, cancel := context.WithTimeout(ctx, o.timing.Call)
		defer cancel()
		if err := o.connect(ctx); err != nil {
			return err
		}
		o.conn.ResetConnectBackoff()
		_, err := o.Status(ctx)
		o.answered = o.answered || err == nil
		if err != nil && gone(err) {
			return err
		}
		return nil
	})
	if err != nil && ctx.Err() != nil {
		o.traffic.late.Store(true)
	}
	return err
}

// A plugin that does not listen is reported after firstNotice and then at each noticeEvery.
const (
	firstNotice = 2 * time.Second
	noticeEvery = 5 * time.Second
)

// lastWords are the end of the output of a plugin that the suite started, on one line without control characters.
func (o *ownProcess) lastWords() string {
	text, err := os.ReadFile(o.spec.LogFile)
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
func (o *ownProcess) revive(ctx context.Context) error {
	if o.Running() {
		if err := o.Kill(ctx); err != nil {
			return err
		}
	}
	if o.at.IsFile() {
		if err := endpoint.RemoveStale(host.Host{}, o.at.Address); err != nil {
			return err
		}
	}
	return o.Start(ctx)
}

// connect opens and closes a connection to the socket.
func (c *client) connect(ctx context.Context) error {
	conn, err := c.at.Dial(ctx, host.Host{})
	if err != nil {
		return err
	}
	return conn.Close()
}

// Terminate sends SIGTERM and waits for the end. It returns how the process ended: Forced if it needed SIGKILL. It needs the capability Command.
func (o *ownProcess) Terminate(ctx context.Context) (process.Exit, error) {
	err := o.now.Stop(ctx)
	exit, ended := o.now.Exit()
	if !ended {
		return exit, fmt.Errorf("stop the plugin: %w", err)
	}
	if exit.Forced {
		o.traffic.late.Store(true)
	}
	o.disconnected(ctx)
	return exit, nil
}

// end is Terminate where it does not matter how the process ends.
func (o *ownProcess) end(ctx context.Context) error {
	_, err := o.Terminate(ctx)
	return err
}

// disconnected waits until the connection of the checks knows that its process has ended. Until then a call is sent to the ended process, and fails
// in place of waiting for the next one. A connection that has just served its first call may say for a moment that it still connects.
func (c *client) disconnected(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.timing.Call)
	defer cancel()
	for state := c.conn.GetState(); (state == connectivity.Ready || state == connectivity.Connecting) && c.conn.WaitForStateChange(ctx, state); state = c.conn.GetState() {
	}
}

// Kill sends SIGKILL and waits for the end. It needs the capability Command.
func (o *ownProcess) Kill(ctx context.Context) error {
	if err := o.now.Kill(); err != nil {
		return fmt.Errorf("kill the plugin: %w", err)
	}
	select {
	case <-o.now.Done():
		o.disconnected(ctx)
		return nil
	case <-ctx.Done():
		return fmt.Errorf("kill the plugin: %w", ctx.Err())
	}
}

// Running reports whether the process that the suite started runs. Without the capability Command it is false.
func (o *ownProcess) Running() bool {
	if o.now == nil {
		return false
	}
	_, ended := o.ended()
	return !ended
}

// ended reports whether the process that the suite started has ended, and how. Its output is left out: it may have secrets.
func (o *ownProcess) ended() (how string, ended bool) {
	if o.now == nil {
		return "", false
	}
	exit, ended := o.now.Exit()
	return fmt.Sprintf("the process ended: %v", exit), ended
}

// seen is what a finding says of a plugin that failed with an error: how its process has ended, or the error if it has not.
func (o *ownProcess) seen(err error) string {
	if how, ended := o.ended(); ended {
		return how
	}
	return show(err)
}

// PID is the process that accepts connections at the socket, as the kernel knows it (SO_PEERCRED).
func (c *client) PID(ctx context.Context) (int, error) {
	conn, err := c.at.Dial(ctx, host.Host{})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return 0, errors.New("the connection has no descriptor")
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	control := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = cmp.Or(control, err); err != nil {
		return 0, err
	}
	if cred.Pid <= 0 { // the process is in another namespace
		return 0, errors.New("the process of the plugin is not visible here")
	}
	return int(cred.Pid), nil
}

// readableProcess reports whether /proc shows the plugin's memory and descriptors.
func (c *client) readableProcess(ctx context.Context) bool {
	pid, err := c.PID(ctx)
	if err != nil || pid == os.Getpid() {
		return false
	}
	_, err = countDescriptors(pid)
	return err == nil
}
