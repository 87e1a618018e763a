package proxy

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/internal/entry"
)

// Options of a proxy.
type Options struct {
	// Listen is where connections are accepted and Upstream is where they go on to, host:port each. Port 0 of Listen is a free one.
	Listen, Upstream string
	// Fault is in force from the first connection to the last.
	Fault netfault.Fault
	// Ready is a file that has the address while connections are accepted.
	Ready string
}

const usage = `usage: kmsharness-proxy --listen HOST:PORT --upstream HOST:PORT --fault MODE [--delay DURATION] [--direction DIRECTION] [--rate BYTES] [--loss PERCENT] --ready FILE

Passes TCP connections on with a fault, until it is told to end by SIGTERM; then it resets them. While it accepts, FILE has the
address where it does.

`

// Parse reads a command line without the program's name. It returns flag.ErrHelp after it printed help to out.
func Parse(args []string, out io.Writer) (Options, error) {
	var o Options
	f := flag.NewFlagSet("kmsharness-proxy", flag.ContinueOnError)
	f.StringVar(&o.Listen, "listen", "", "`address` to accept connections at, HOST:PORT; no HOST: everywhere; PORT 0: a free one (required)")
	f.StringVar(&o.Upstream, "upstream", "", "`address` to pass them on to, HOST:PORT (required)")
	f.StringVar((*string)(&o.Fault.Mode), "fault", "", "`mode`: "+netfault.Modes()+" (required)")
	f.DurationVar(&o.Fault.Delay, "delay", 0, "`duration` that --fault slow holds every byte back in each direction, and that --fault slow-handshake takes for a handshake")
	f.StringVar((*string)(&o.Fault.Direction), "direction", "", "`direction` that --fault cut loses: requests, answers; both if left out")
	f.IntVar(&o.Fault.Rate, "rate", 0, "`bytes` that --fault throttled carries in a second and direction")
	f.IntVar(&o.Fault.Loss, "loss", 0, "`percent` of the segments that --fault lossy loses")
	f.StringVar(&o.Ready, "ready", "", "`file` that has the address while connections are accepted (required)")
	if err := entry.Parse(f, usage, args, out); err != nil {
		return o, err
	}
	if f.NArg() != 0 {
		return o, fmt.Errorf("unexpected argument %q: expected flags only", f.Arg(0))
	}
	return o, o.validate()
}

func (o Options) validate() error {
	if err := address("--listen", o.Listen); err != nil {
		return err
	}
	if err := address("--upstream", o.Upstream); err != nil {
		return err
	}
	switch {
	case o.Fault.Mode == "":
		return fmt.Errorf("--fault is missing: expected one of %s", netfault.Modes())
	case o.Ready == "":
		return errors.New("--ready is missing: expected a file")
	}
	return o.Fault.Validate()
}

func address(name, at string) error {
	if at == "" {
		return fmt.Errorf("%s is missing: expected HOST:PORT", name)
	}
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		return fmt.Errorf("%s: %w: expected HOST:PORT", name, err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%s: port %q: expected a number from 0 to 65535", name, port)
	}
	return nil
}
