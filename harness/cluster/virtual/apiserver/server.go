package apiserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/network"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
)

// Options of a Server. Cluster and Name are required.
type Options struct {
	// Name of the server, which its answers' latencies depend on.
	Name    string
	Cluster *Cluster
	Seed    uint64
	// Authenticate is who sends a request; nil: the user is the bearer token.
	Authenticate func(*http.Request) (user.Info, error)
	// Authorize refuses what a user may not do; nil: everybody may do everything.
	Authorize func(*Request) error
	// Admit refuses a write by what it would make of an object: was is nil of a new one, will of one that is deleted. Nil: nothing is refused.
	Admit func(q *Request, was, will *store.Version) error
	// Refuse answers a request with an error before it is authorized, as an overloaded server does; nil: none.
	Refuse func(*Request) error
	// Wrap is put around the server's handler; nil: nothing.
	Wrap func(http.Handler) http.Handler
	// Watches makes watches late or ends them; nil: neither.
	Watches *Watches
	// Special answers what is created at a resource and subresource, such as "serviceaccounts/token", and stored nowhere.
	Special map[string]func(*Request) (any, error)
	// Storage is asked before a request reads or writes objects, and may wait; nil: etcd is there.
	Storage func(ctx context.Context) error
	// Transformer encrypts a resource at rest; nil, or what returns nil, encrypts nothing.
	Transformer func(schema.GroupResource) value.Transformer
	// Registry begins the keys of its objects in etcd; empty: "/registry".
	Registry string
	// Aggregate is the handler of another API server to which an authorized request is passed on; nil, or what returns nil: this one answers.
	Aggregate func(*Request) http.Handler
	// Ready is what /readyz and /healthz say; nil: ready.
	Ready func(*http.Request) error
	// Audit gets a line for each stage of a request that the policy selects; nil: none. Without a policy it gets all.
	Audit       io.Writer
	AuditPolicy audit.PolicyRuleEvaluator
	// Metrics is what /metrics says; nil: nothing.
	Metrics http.Handler
}

type Server struct {
	Options
	http *http.Server
	done chan struct{}
	over chan struct{}  // is closed when it shuts down
	busy sync.WaitGroup // with requests
	log  auditLog
	rest atRest
}

// New is a server that does not serve yet.
func New(o Options) *Server {
	s := &Server{Options: o, done: make(chan struct{}), over: make(chan struct{}), log: auditLog{out: o.Audit}, rest: atRest{o.Cluster, cmp.Or(o.Registry, Registry), o.Transformer}}
	var handler http.Handler = s
	if o.Wrap != nil {
		handler = o.Wrap(s)
	}
	s.http = &http.Server{Handler: handler, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, ErrorLog: log.New(io.Discard, "", 0)}
	return s
}

// readHeaderTimeout and idleTimeout are kube-apiserver's (k8s.io/apiserver/pkg/server/secure_serving.go). Without the
// first, each connection whose end a cut link has lost would stay.
const readHeaderTimeout, idleTimeout = 32 * time.Second, 90 * time.Second

// Serve begins to serve on a listener; with a TLS configuration clients may speak HTTP/2.
func (s *Server) Serve(l net.Listener, secure *tls.Config) {
	s.http.TLSConfig = secure
	go func() {
		defer close(s.done)
		if secure != nil {
			_ = s.http.ServeTLS(l, "", "") // Close ends it
		} else {
			_ = s.http.Serve(l)
		}
	}()
}

// Close ends the server with all its connections, and waits until it has.
func (s *Server) Close() {
	_ = s.http.Close() // of the listener, which may be closed already
	<-s.done
	s.busy.Wait()
}

// Shutdown ends watches, lets other requests end, and ends the server at the end of ctx, as kube-apiserver does after
// SIGTERM. It is called once.
func (s *Server) Shutdown(ctx context.Context) {
	close(s.over)
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	<-s.done
	s.busy.Wait()
}

// Working times of a request.
const (
	// A request takes 100 to 500 µs by its hash, so that requests of one instant are carried out in an order that the
	// seed decides, and not the Go scheduler.
	leastWork = 100 * time.Microsecond
	moreWork  = 400 * time.Microsecond
)

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.busy.Add(1)
	defer s.busy.Done()
	r = audited(r)
	q, err := readRequest(r)
	q.received = time.Now()
	if err == nil {
		if u, denied := s.authenticate(r); denied == nil {
			q.User = u
		} else {
			err = denied
		}
	}
	q.id = network.Hash(s.Seed).Text(s.Name).Text(r.Method).Text(timeless(r.URL)).Text(q.User.GetName()).Number(q.received.UnixNano())
	var next http.Handler
	if err == nil && s.Aggregate != nil {
		next = s.Aggregate(q)
	}
	if err == nil && next == nil && q.writes() {
		q.Body, err = readBody(r) // what ends a connection is noticed only after that
	}
	if q.Verb == "create" {
		q.id = q.id.Text(nameIn(q.Body)) // creations of one instant differ in nothing else
	}
	time.Sleep(leastWork + q.id.Below(moreWork))
	if r.Context().Err() != nil { // the client has gone: kube-apiserver gives up what it has begun
		return
	}
	if err == nil && next == nil && !q.IsResourceRequest {
		q.auditing = s.auditing(q)
		s.audit(q, stageReceived, nil, nil)
		s.audit(q, stageComplete, nil, nil)
		s.other(w, q)
		return
	}
	if err == nil {
		if err = s.allowed(q); err != nil {
			q.Body = nil // it was not looked at
		}
	}
	q.auditing = s.auditing(q)
	s.audit(q, stageReceived, nil, nil)
	var out any
	var made *store.Version
	switch {
	case err != nil:
	case next != nil:
		s.pass(w, q, next)
		return
	case q.Verb == "watch":
		if err = s.watch(w, q); err == nil {
			return
		}
	default:
		out, made, err = s.answer(q)
	}
	if err != nil {
		s.fail(w, q, err)
		return
	}
	s.audit(q, stageComplete, nil, made)
	write(w, q.code(), out)
}

// pass lets an aggregated API server answer. The request was authorized here. A watch has no time-out.
func (s *Server) pass(w http.ResponseWriter, q *Request, next http.Handler) {
	r := q.HTTP
	if q.Verb != "watch" {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		r = r.WithContext(ctx)
	}
	out := &passed{ResponseWriter: w, code: http.StatusOK}
	next.ServeHTTP(out, r)
	s.audit(q, stageComplete, &metav1.Status{Code: int32(out.code)}, nil)
}

type passed struct {
	http.ResponseWriter
	code int
}

func (p *passed) WriteHeader(code int) {
	p.code = code
	p.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController, which flushes.
func (p *passed) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func write(w http.ResponseWriter, code int, out any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if text, ok := out.(json.RawMessage); ok { // which an encoder would read once more
		_, _ = w.Write(text)
		return
	}
	_ = json.NewEncoder(w).Encode(out) // the client has gone
}

func (s *Server) authenticate(r *http.Request) (user.Info, error) {
	if s.Authenticate == nil {
		token, _ := bearer(r)
		return &user.DefaultInfo{Name: token}, nil
	}
	return s.Authenticate(r)
}

// allowed is nil for a request that may be carried out.
func (s *Server) allowed(q *Request) error {
	if s.Refuse != nil {
		if err := s.Refuse(q); err != nil {
			return err
		}
	}
	if s.Authorize != nil {
		return s.Authorize(q)
	}
	return nil
}

func (s *Server) fail(w http.ResponseWriter, q *Request, err error) {
	st := statusOf(err)
	s.audit(q, stageComplete, &st, nil)
	if st.Details != nil && st.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(st.Details.RetryAfterSeconds)))
	}
	write(w, int(st.Code), st)
}

func statusOf(err error) metav1.Status {
	st := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(), Reason: metav1.StatusReasonInternalError}
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		st = known.Status()
	}
	st.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return st
}
