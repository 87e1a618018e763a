package front

import (
	"flag"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"

	"github.com/kmsharness/kmsharness/internal/entry"
)

// Options of the program.
type Options struct {
	// Listen is where clients connect, and Upstream is the API server, HOST:PORT each. The fronts of all API servers have the port of Listen.
	Listen, Upstream string
	// Dir is the folder of kubeadm's certificates and kubeconfigs.
	Dir string
}

const usage = `usage: kmsharness-front --listen HOST:PORT --upstream HOST:PORT [--kubernetes DIR]

Adds the field Alt-Svc to the responses of a kube-apiserver: the addresses of all API servers that the EndpointSlices of the Service kubernetes
name as ready, with the port of --listen. Runs on every control-plane node until SIGTERM.

`

// Parse reads a command line without the program's name. It returns flag.ErrHelp after it printed help to out.
func Parse(args []string, out io.Writer) (Options, error) {
	var o Options
	f := flag.NewFlagSet("kmsharness-front", flag.ContinueOnError)
	f.StringVar(&o.Listen, "listen", "", "`address` to accept connections at, HOST:PORT; no HOST: everywhere (required)")
	f.StringVar(&o.Upstream, "upstream", "", "`address` of the API server, HOST:PORT (required)")
	f.StringVar(&o.Dir, "kubernetes", "/etc/kubernetes", "`folder` with pki and admin.conf, as kubeadm makes it")
	if err := entry.Parse(f, usage, args, out); err != nil {
		return o, err
	}
	if f.NArg() != 0 {
		return o, fmt.Errorf("unexpected argument %q: expected flags only", f.Arg(0))
	}
	if _, err := portOf("--listen", o.Listen); err != nil {
		return o, err
	}
	_, err := portOf("--upstream", o.Upstream)
	return o, err
}

// portOf is the port of a flag's value.
func portOf(flag, value string) (uint16, error) {
	if value == "" {
		return 0, fmt.Errorf("%s is missing: expected HOST:PORT", flag)
	}
	_, text, err := net.SplitHostPort(value)
	if err != nil {
		return 0, fmt.Errorf("%s: %w: expected HOST:PORT", flag, err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("%s: port %q: expected a number from 1 to 65535", flag, text)
	}
	return uint16(port), nil
}

func (o Options) pki(name string) string { return filepath.Join(o.Dir, "pki", name) }

// kubeconfig is an administrator's.
func (o Options) kubeconfig() string { return filepath.Join(o.Dir, "admin.conf") }
