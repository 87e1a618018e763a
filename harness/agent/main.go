package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/supervisor"
)

const usage = `usage: kmsharness-agent serve --dir DIR --secret DIR [--control HOST:PORT] [--api HOST:PORT]
       kmsharness-agent install DIR
       kmsharness-agent supervise FLAGS…

serve gives the harness the files and sockets of a pod, and its programs a recorded connection to the API server.
install copies the program into a folder, for containers of other images. supervise is kmsharness-supervisor.
`

// Main is the program kmsharness-agent.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	var err error
	switch {
	case verb == "supervise":
		return supervisor.Main(ctx, args, stdout, stderr)
	case verb == "serve":
		err = serve(ctx, args)
	case verb == "install" && len(args) == 1:
		err = install(args[0])
	default:
		fmt.Fprint(stderr, usage)
		return 2
	}
	if err != nil {
		fmt.Fprintln(stderr, "kmsharness-agent:", err)
		return 1
	}
	return 0
}

// Program is the file name of the program, also where install copies it to.
const Program = "kmsharness-agent"

func install(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, Program), text, 0o755)
}

// Ports on the pod's loopback address.
const (
	ControlPort = "9440"
	APIPort     = "6443"
)

// Files of the secret.
const (
	SecretCA    = "ca.crt" // who signs the certificates of the programs under test
	SecretCert  = "tls.crt"
	SecretKey   = "tls.key"
	SecretToken = "token" // of the control API
)

// Folder is the agent's own, below its folder; AuditLog is the name of the log of requests.
const (
	Folder   = "agent"
	AuditLog = Folder + "/audit.jsonl"
)

type options struct{ dir, secret, control, api string }

func serve(ctx context.Context, args []string) error {
	var o options
	f := flag.NewFlagSet(Program+" serve", flag.ContinueOnError)
	f.SetOutput(io.Discard) // the caller prints errors, in one line
	f.StringVar(&o.dir, "dir", "", "folder of the files and sockets")
	f.StringVar(&o.secret, "secret", "", "folder of ca.crt, tls.crt, tls.key and token")
	f.StringVar(&o.control, "control", "127.0.0.1:"+ControlPort, "address of the control API")
	f.StringVar(&o.api, "api", "127.0.0.1:"+APIPort, "address of the connection to the API server")
	if err := f.Parse(args); err != nil {
		return err
	}
	if o.dir == "" || o.secret == "" {
		return errors.New("--dir and --secret: expected both")
	}
	api, err := InCluster()
	if err != nil {
		return err
	}
	return run(ctx, o, api)
}

func run(ctx context.Context, o options, api API) error {
	token, err := os.ReadFile(filepath.Join(o.secret, SecretToken))
	if err != nil {
		return fmt.Errorf("--secret: %w", err)
	}
	ca, err := os.ReadFile(filepath.Join(o.secret, SecretCA))
	if err != nil {
		return fmt.Errorf("--secret: %w", err)
	}
	clients, err := pool(ca)
	if err != nil {
		return fmt.Errorf("--secret %s: %w", SecretCA, err)
	}
	cert, err := tls.LoadX509KeyPair(filepath.Join(o.secret, SecretCert), filepath.Join(o.secret, SecretKey))
	if err != nil {
		return fmt.Errorf("--secret: %w", err)
	}
	log, err := openLineLog(filepath.Join(o.dir, AuditLog))
	if err != nil {
		return fmt.Errorf("log of requests: %w", err)
	}
	defer log.file.Close()
	// The link is in front of the proxy, on an address that the programs know.
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	link, err := netfault.NewLinkAt("api", o.api, inner.Addr().String())
	if err != nil {
		return errors.Join(err, inner.Close())
	}
	defer link.Close()
	outer, err := net.Listen("tcp", o.control)
	if err != nil {
		return errors.Join(err, inner.Close())
	}
	c := &control{folder: folder(o.dir), token: strings.TrimSpace(string(token)), link: link}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return httpjson.Serve(ctx, outer, c.handler()) })
	both.Go(func() error { return serveAPI(ctx, inner, cert, newAPIProxy(api, clients, log)) })
	return both.Wait()
}

// headerTimeout bounds how long a client may take to send its headers.
const headerTimeout = 10 * time.Second

// serveAPI asks for client certificates and leaves their verification to the handler: an API server refuses one that has expired with an
// answer, not with the end of the connection.
func serveAPI(ctx context.Context, l net.Listener, cert tls.Certificate, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, TLSConfig: &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}}
	ended := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer ended()
	if err := s.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the connection to the API server: %w", err)
	}
	return nil
}
