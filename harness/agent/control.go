package agent

import (
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
	"github.com/kmsharness/kmsharness/harness/netfault"
)

// Paths of the control API.
const (
	pathFollow = "/v1/follow"
	pathSizes  = "/v1/sizes"
	pathFile   = "/v1/file"
	pathDial   = "/v1/dial"
	pathLink   = "/v1/link"
	pathTime   = "/v1/time"
)

// control is the API for the harness. It is served on the pod's loopback address, which the programs under test share: so it asks for a
// token that they do not have.
type control struct {
	folder folder
	token  string
	link   *netfault.Link // between the programs under test and the API server
}

func (c *control) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathFollow, c.follow)
	mux.Handle("GET "+pathSizes, httpjson.Handler(func(*http.Request) (any, error) { return c.folder.sizes() }))
	mux.HandleFunc("PUT "+pathFile, c.put)
	mux.HandleFunc("GET "+pathDial, c.dial)
	mux.Handle("PUT "+pathLink, httpjson.Handler(c.setLink))
	mux.Handle("GET "+pathTime, httpjson.Handler(func(*http.Request) (any, error) { return time.Now().UTC(), nil }))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := []byte(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		if subtle.ConstantTimeCompare(given, []byte(c.token)) != 1 {
			httpjson.WriteError(w, httpjson.Errorf(http.StatusUnauthorized, "the token is missing or wrong"))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (c *control) follow(w http.ResponseWriter, r *http.Request) {
	has := Sizes{}
	if err := httpjson.Decode(r, &has); err != nil {
		httpjson.WriteError(w, err)
		return
	}
	flush := http.NewResponseController(w).Flush
	_ = c.folder.follow(r.Context(), has, w, func() { _ = flush() }) // the reader begins again where it is
}

// maxFile bounds a file that is put.
const maxFile = 1 << 20

func (c *control) put(w http.ResponseWriter, r *http.Request) {
	mode, err := strconv.ParseUint(r.URL.Query().Get("mode"), 8, 9)
	if err == nil {
		err = c.folder.put(r.URL.Query().Get("name"), http.MaxBytesReader(w, r.Body, maxFile), fs.FileMode(mode))
	}
	if err != nil {
		httpjson.WriteError(w, httpjson.Errorf(http.StatusBadRequest, "put a file: %v", err))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// dialTimeout bounds a connection within the pod.
const dialTimeout = 2 * time.Second

// dial connects to a socket of the folder, or to a port of the pod ("tcp:PORT"), and hands the connection over.
func (c *control) dial(w http.ResponseWriter, r *http.Request) {
	to := r.URL.Query().Get("to")
	conn, err := c.connect(r.Context(), to)
	if err != nil {
		httpjson.WriteError(w, httpjson.Errorf(http.StatusBadGateway, "dial %.100s: %v", to, err))
		return
	}
	defer conn.Close()
	mine, rest, err := http.NewResponseController(w).Hijack()
	if err != nil {
		httpjson.WriteError(w, err)
		return
	}
	defer mine.Close()
	if _, err := io.WriteString(mine, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: bytes\r\n\r\n"); err != nil {
		return
	}
	Splice(&dialled{Conn: mine, rest: rest}, conn)
}

func (c *control) connect(ctx context.Context, to string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if port, ok := strings.CutPrefix(to, "tcp:"); ok {
		return new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	}
	path, err := c.folder.path(to)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "unix", path)
}

func (c *control) setLink(r *http.Request) (any, error) {
	fault := netfault.Fault{}
	if err := httpjson.Decode(r, &fault); err != nil {
		return nil, err
	}
	if err := fault.Validate(); err != nil {
		return nil, httpjson.Errorf(http.StatusBadRequest, "%v", err)
	}
	if err := c.link.Set(fault); err != nil {
		return nil, fmt.Errorf("link to the API server: %w", err)
	}
	return nil, nil
}
