package hold

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
)

// Options of a hold.
type Options struct {
	// Control is the socket of the control API.
	Control endpoint.Endpoint
	// Journal and Log are files that are appended to.
	Journal, Log string
	// WaitFor is a URL that must answer 200 before the program is started; empty: it is started at once.
	WaitFor string
	// Argv is the program and its arguments. CommandFile is a file to read them from at every start, instead: JSON, a list
	// of words. They can change while the container stays as it is; while there is no such file, the program is held.
	Argv        []string
	CommandFile string
	// Env is added to the environment of the program, NAME=VALUE each.
	Env []string
}

// controlMode lets everybody who can reach the socket use it. It lies in a folder that the harness made for one
// environment; hold is root or not, as its image says, and the harness on the other side of the mount need not be.
const controlMode fs.FileMode = 0o666

const usage = `usage: kmsharness-hold --control unix:///PATH --journal FILE --log FILE [--wait-for URL] (--command FILE | -- PROGRAM [ARGUMENT…])

Runs PROGRAM as process 1 of a container, and stops, kills, pauses, resumes and starts it on request:
GET /v1/state, POST /v1/{start,stop?grace=4s,kill,pause,resume} at the control socket.

`

// Parse reads a command line without the program's name. It returns flag.ErrHelp after it printed help to out.
func Parse(args []string, out io.Writer) (Options, error) {
	var o Options
	var control string
	f := flag.NewFlagSet("kmsharness-hold", flag.ContinueOnError)
	f.SetOutput(io.Discard) // errors are told by the caller, in one line
	f.StringVar(&control, "control", "", "`endpoint` of the control API, unix:///PATH (required)")
	f.StringVar(&o.Journal, "journal", "", "`file` that every change of state is appended to as a JSON line (required)")
	f.StringVar(&o.Log, "log", "", "`file` that the program's output is appended to, beside hold's own output (required)")
	f.StringVar(&o.CommandFile, "command", "", "`file` with the program and its arguments as a JSON list, read at every start")
	f.Func("env", "`NAME=VALUE` for the program's environment; may be repeated", func(v string) error {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" {
			return fmt.Errorf("expected NAME=VALUE")
		}
		o.Env = append(o.Env, v)
		return nil
	})
	f.StringVar(&o.WaitFor, "wait-for", "", "`URL` on a loopback address that must answer 200 before the program is started")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, usage)
		f.SetOutput(out)
		f.PrintDefaults()
		return o, err
	} else if err != nil {
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
	case o.WaitFor != "":
		return parseWaitFor(o.WaitFor)
	}
	return nil
}
