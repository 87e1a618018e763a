package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/host"
)

// Exit codes of the supervisor itself; every other one is the program's. 125 is what container engines use for a failure of
// their own.
const exitFailed = 125

// Main is the program kmsharness-supervisor.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := Parse(args, stdout)
	if err != nil {
		return entry.Exit(stderr, "kmsharness-supervisor", entry.ExitUsage, err)
	}
	code, err := Run(ctx, o, stdout, stderr)
	if err != nil {
		return entry.Exit(stderr, "kmsharness-supervisor", exitFailed, err)
	}
	return code
}

// Options of a supervisor.
type Options struct {
	// Control is the socket of the control API.
	Control endpoint.Endpoint
	// Journal and Log are files that are appended to.
	Journal, Log string
	// Argv is the program and its arguments. CommandFile is a file to read them from at every start, instead: JSON, a list
	// of words. They can change while the container stays as it is; while there is no such file, the program is held.
	Argv        []string
	CommandFile string
	// Env is added to the environment of the program, NAME=VALUE each.
	Env []string
	// User runs the program; nil: the user of the supervisor. With it the folders of Control and Journal become root's alone, and their group's.
	User *syscall.Credential
}

// controlMode lets everybody who can reach the socket use it: the harness on the other side of the mount need not be root. The folder that the socket
// is in keeps others out; see Options.User.
const controlMode fs.FileMode = 0o666

const usage = `usage: kmsharness-supervisor --control unix:///PATH --journal FILE --log FILE (--command FILE | -- PROGRAM [ARGUMENT…])

Runs PROGRAM as process 1 of a container, and stops, kills, pauses, resumes and starts it on request:
GET /v1/state, POST /v1/{start,stop,kill,pause,resume} at the control socket.

`

// Parse reads a command line without the program's name. It returns flag.ErrHelp after it printed help to out.
func Parse(args []string, out io.Writer) (Options, error) {
	var o Options
	var control string
	f := flag.NewFlagSet("kmsharness-supervisor", flag.ContinueOnError)
	f.StringVar(&control, "control", "", "`endpoint` of the control API, unix:///PATH (required)")
	f.StringVar(&o.Journal, "journal", "", "`file` that every change of state is appended to as a JSON line (required)")
	f.StringVar(&o.Log, "log", "", "`file` that the program's output is appended to, beside the supervisor's own output (required)")
	f.StringVar(&o.CommandFile, "command", "", "`file` with the program and its arguments as a JSON list, read at every start")
	f.Func("env", "`NAME=VALUE` for the program's environment; may be repeated", func(v string) error {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" {
			return fmt.Errorf("expected NAME=VALUE")
		}
		o.Env = append(o.Env, v)
		return nil
	})
	f.Func("user", "`UID:GID` of the program, which can then reach neither control API nor journal; the supervisor has to be root", func(v string) (err error) {
		o.User, err = parseUser(v)
		return err
	})
	if err := entry.Parse(f, usage, args, out); err != nil {
		return o, err
	}
	o.Argv = f.Args()
	var err error
	if o.Control, err = endpoint.ParseUnix(control); err != nil {
		return o, fmt.Errorf("--control: %w", err)
	}
	return o, o.validate()
}

func (o Options) validate() error {
	switch {
	case o.Journal == "":
		return errors.New("--journal is missing: expected a file")
	case o.Log == "":
		return errors.New("--log is missing: expected a file")
	case len(o.Argv) == 0 && o.CommandFile == "":
		return errors.New("the program is missing: expected -- PROGRAM [ARGUMENT…] after the flags, or --command")
	case len(o.Argv) != 0 && o.CommandFile != "":
		return fmt.Errorf("--command and -- %s: expected one of them", o.Argv[0])
	case o.User != nil && !o.Control.IsFile():
		return fmt.Errorf("--control %s: with --user expected unix:///PATH, which a folder protects", o.Control)
	}
	return nil
}

// commandMissing says that there is no command yet, so that the program has to wait to be started.
func (o Options) commandMissing() bool {
	if o.CommandFile == "" {
		return false
	}
	_, err := os.Stat(o.CommandFile)
	return errors.Is(err, fs.ErrNotExist)
}

// command is the program and its arguments, as they are now.
func (o Options) command() ([]string, error) {
	if o.CommandFile == "" {
		return o.Argv, nil
	}
	text, err := os.ReadFile(o.CommandFile)
	if err != nil {
		return nil, fmt.Errorf("--command: %w", err)
	}
	argv, err := ParseCommand(text)
	if err != nil {
		return nil, fmt.Errorf("--command %s: %w", o.CommandFile, err)
	}
	return argv, nil
}

// ParseCommand reads the content of a command file.
func ParseCommand(text []byte) (argv []string, err error) {
	if err := json.Unmarshal(text, &argv); err != nil {
		return nil, fmt.Errorf("expected a JSON list of words such as [\"/program\", \"--flag\"]: %w", err)
	}
	if len(argv) == 0 || argv[0] == "" {
		return nil, errors.New("expected a program as the first word")
	}
	return argv, nil
}

// Run runs the program until it ends by itself, or, when ctx ends, until it has stopped. It returns the exit code for the
// container. An error means that the supervisor itself could not do its work.
func Run(ctx context.Context, o Options, stdout, stderr io.Writer) (code int, err error) {
	if err := errors.Join(adopt(), o.protect()); err != nil {
		return 0, err
	}
	j, err := openJournal(o.Journal)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, j.Err(), j.file.Close()) }()
	// The kubelet reads the container's own streams, the harness reads the log.
	log, err := os.OpenFile(o.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, fmt.Errorf("--log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	l, err := endpoint.Listen(host.Host{}, o.Control, controlMode)
	if err != nil {
		return 0, fmt.Errorf("--control: %w", err)
	}
	p := newProgram(o.command, both{stdout, log}, both{stderr, log}, j, markerOf(o.Control))
	p.spec.Env = o.Env
	p.spec.Attr = func(a *syscall.SysProcAttr) { a.Credential = o.User }
	if o.commandMissing() {
		p.settle(Stopped)
	}
	tell := func(text string) { fmt.Fprintln(stderr, "kmsharness-supervisor:", text) }
	return p.run(ctx, l, tell)
}

// run owns what goes on beside the program: the control API and the reaper.
func (p *program) run(ctx context.Context, l net.Listener, tell func(string)) (code int, err error) {
	if err := p.restore(); err != nil {
		return 0, errors.Join(err, l.Close(), p.supervisor.Close(ctx))
	}
	// They go on while the program stops.
	all, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	group, beside := errgroup.WithContext(all)
	group.Go(func() error { return httpjson.Serve(beside, host.Host{}, l, handler(p)) })
	group.Go(func() error { p.reap(beside); return nil })
	group.Go(func() error { return p.begin(all, tell) })
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

// protectedFolder lets root in, and the group that the folder has, which is the harness's.
const protectedFolder = 0o770

// parseUser reads UID:GID. Root can enter every folder, so that it is no user for a program.
func parseUser(text string) (*syscall.Credential, error) {
	uid, gid, _ := strings.Cut(text, ":")
	user, err1 := strconv.ParseUint(uid, 10, 32)
	group, err2 := strconv.ParseUint(gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil || user == 0 || group == 0 {
		return nil, errors.New("expected UID:GID, two numbers that are not 0")
	}
	return &syscall.Credential{Uid: uint32(user), Gid: uint32(group)}, nil
}

// protect takes the folders of the control socket and of the journal from the program: it is another user, and in another group. The owner of a folder
// could open it again, so root becomes the owner.
func (o Options) protect() error {
	if o.User == nil {
		return nil
	}
	for _, dir := range []string{filepath.Dir(o.Control.Address), filepath.Dir(o.Journal)} {
		info, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("--user: %w", err)
		}
		if is, ok := info.Sys().(*syscall.Stat_t); ok && is.Gid == o.User.Gid {
			return fmt.Errorf("--user: %s belongs to the group %d of the program", dir, is.Gid)
		}
		if err := errors.Join(os.Chown(dir, 0, -1), os.Chmod(dir, protectedFolder)); err != nil {
			return fmt.Errorf("--user: keep the program out of %s: %w", dir, err)
		}
	}
	return nil
}
