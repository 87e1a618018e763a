package front

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kmsharness/kmsharness/altsvc/advertise"
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

// Main is the program kmsharness-front. It ends with ctx.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := Parse(args, stdout)
	if err != nil {
		return entry.Exit(stderr, "kmsharness-front", entry.ExitUsage, err)
	}
	return entry.Exit(stderr, "kmsharness-front", entry.ExitFailed, Run(ctx, o))
}

// Run serves until ctx ends. Then no connection is left.
func Run(ctx context.Context, o Options) error {
	port, err := portOf("--listen", o.Listen)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("https://"+o.Upstream, o.kubeconfig())
	if err != nil {
		return fmt.Errorf("read %s: %w", o.kubeconfig(), err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", o.Upstream, err)
	}
	endpoints, err := advertise.NewEndpoints(client)
	if err != nil {
		return err
	}
	options, err := o.certificates()
	if err != nil {
		return err
	}
	options.Field = advertise.Options{
		Enabled: true, Ready: func() []netip.AddrPort { return endpoints.At(port) },
		// RBAC decides: behind the load balancer all clients have its address.
		Subnets: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")},
		Allowed: advertise.NewAccess(client.AuthorizationV1().SubjectAccessReviews(), nil).Allowed,
	}
	front, err := advertise.NewFront(options)
	if err != nil {
		return err
	}
	endpoints.Run(ctx)
	return front.Close()
}

// certificates are those that kubeadm makes.
func (o Options) certificates() (advertise.FrontOptions, error) {
	f := advertise.FrontOptions{Listen: o.Listen, Upstream: o.Upstream, Authority: x509.NewCertPool()}
	var err1, err2 error
	f.Serving, err1 = tls.LoadX509KeyPair(o.pki("apiserver.crt"), o.pki("apiserver.key"))
	f.Proxy, err2 = tls.LoadX509KeyPair(o.pki("front-proxy-client.crt"), o.pki("front-proxy-client.key"))
	authority, err3 := os.ReadFile(o.pki("ca.crt"))
	if err := errors.Join(err1, err2, err3); err != nil {
		return f, fmt.Errorf("read the certificates of the node: %w", err)
	}
	if !f.Authority.AppendCertsFromPEM(authority) {
		return f, fmt.Errorf("read %s: expected a certificate", o.pki("ca.crt"))
	}
	return f, nil
}
