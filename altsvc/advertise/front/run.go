package front

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kmsharness/kmsharness/altsvc/advertise"
	"github.com/kmsharness/kmsharness/internal/entry"
)

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
