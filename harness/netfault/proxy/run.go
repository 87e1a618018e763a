package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
	"github.com/kmsharness/kmsharness/internal/entry"
	"github.com/kmsharness/kmsharness/internal/host"
)

// Options of a proxy.
type Options struct {
	// Upstream is where connections go on to, host:port.
	Upstream string
	// Fault is in force from the first connection to the last.
	Fault netfault.Fault
	// Ready is a file that has the address while connections are accepted.
	Ready string
}

const usage = `usage: kmsharness-proxy --upstream HOST:PORT --fault JSON --ready FILE

Accepts TCP connections at a free port of every address and passes them on with a fault, until SIGTERM; then it resets
them. While it accepts, FILE has the address where it does.

`

// Parse reads a command line without the program's name. It returns flag.ErrHelp after it printed help to out.
func Parse(args []string, out io.Writer) (Options, error) {
	var o Options
	f := flag.NewFlagSet("kmsharness-proxy", flag.ContinueOnError)
	f.StringVar(&o.Upstream, "upstream", "", "`address` to pass connections on to, HOST:PORT (required)")
	f.Func("fault", "`JSON` of a fault, such as {\"mode\":\"slow\",\"delay\":200000000} with the delay in nanoseconds (required)", func(text string) error {
		return json.Unmarshal([]byte(text), &o.Fault)
	})
	f.StringVar(&o.Ready, "ready", "", "`file` that has the address while connections are accepted (required)")
	if err := entry.Parse(f, usage, args, out); err != nil {
		return o, err
	}
	switch {
	case f.NArg() != 0:
		return o, fmt.Errorf("unexpected argument %q: expected flags only", f.Arg(0))
	case o.Upstream == "":
		return o, errors.New("--upstream is missing: expected HOST:PORT")
	case o.Fault.Mode == "":
		return o, errors.New("--fault is missing: expected the JSON of a fault with its mode")
	case o.Ready == "":
		return o, errors.New("--ready is missing: expected a file")
	}
	return o, o.Fault.Validate()
}

// Main is the program kmsharness-proxy. It ends with ctx.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := Parse(args, stdout)
	if err != nil {
		return entry.Exit(stderr, "kmsharness-proxy", entry.ExitUsage, err)
	}
	return entry.Exit(stderr, "kmsharness-proxy", entry.ExitFailed, Run(ctx, o))
}

// Run passes connections on until ctx ends. When it returns they have been reset and the ready file is gone.
func Run(ctx context.Context, o Options) (err error) {
	link, err := netfault.NewLinkAt(host.Host{}, "to "+o.Upstream, ":0", o.Upstream)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, link.Close()) }()
	if err := link.Set(o.Fault); err != nil {
		return err
	}
	if err := atomicfile.Write(o.Ready, []byte(link.Addr()), 0o644); err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	<-ctx.Done()
	return errors.Join(link.Close(), os.Remove(o.Ready))
}
