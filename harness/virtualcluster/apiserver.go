package virtualcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/apiserver"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/encryption"
)

// securePort of an API server.
const securePort = ":6443"

// stopTimeout is how long an API server that stops gives its requests.
const stopTimeout = 10 * time.Second

// apiServer is one of a cluster, which runs or not.
type apiServer struct {
	cluster *Cluster
	name    string
	audit   io.Writer
	watches *apiserver.Watches

	mu      sync.Mutex
	alive   *incarnation  // nil: it does not run
	storage chan struct{} // is closed when the store can be reached again; nil: it can
}

// incarnation is one run of an API server.
type incarnation struct {
	api    *apiserver.Server
	end    context.CancelFunc
	reload sync.WaitGroup
}

func newAPIServer(c *Cluster, name string) *apiServer {
	return &apiServer{cluster: c, name: name, watches: apiserver.NewWatches(func(*apiserver.Request) bool { return true })}
}

func (s *apiServer) encryptionFile() string {
	return filepath.Join(s.cluster.dir, "encryption-"+s.name+".yaml")
}

func (s *apiServer) start(ctx context.Context) error {
	c := s.cluster
	living, end := context.WithCancel(context.Background())
	one := &incarnation{end: end}
	h := c.network.Host(s.name)
	encrypt, err := encryption.Load(living, h, s.encryptionFile(), s.name, encryption.Lines{}, encryption.Around{})
	if err != nil {
		end()
		return fmt.Errorf("start the API server %s: %w", s.name, err)
	}
	l, err := h.Listen(ctx, "tcp", s.name+securePort)
	if err != nil {
		end()
		return fmt.Errorf("start the API server %s: %w", s.name, err)
	}
	one.api = apiserver.New(apiserver.Options{
		Name: s.name, Cluster: c.objects, Seed: c.seed, Authenticate: c.identities.Authenticate, Authorize: c.access.Authorize, Admit: c.access.Admit,
		Special: map[string]func(*apiserver.Request) (any, error){"subjectaccessreviews/": c.access.Review, "serviceaccounts/token": noTokens},
		Refuse:  s.refuse, Watches: s.watches, Storage: s.reach, Transformer: encrypt.Transformer, Ready: encrypt.Ready, Audit: s.audit,
	})
	one.reload.Go(func() { encrypt.Reload(living, encryption.DefaultPoll) })
	one.api.Serve(l, c.identities.Serving(s.name, false, s.name, "kubernetes", "kubernetes.default", "kubernetes.default.svc"))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alive = one
	return nil
}

// noTokens answers a TokenRequest.
func noTokens(q *apiserver.Request) (any, error) {
	return nil, errors.New("tokens of service accounts are not supported by a virtual cluster: use a client certificate (Host.ConfigAs)")
}

func (s *apiServer) kill() {
	s.finish(func(a *apiserver.Server) {
		s.cluster.network.Kill(s.name)
		a.Close()
	})
}

func (s *apiServer) stop(ctx context.Context) {
	s.finish(func(a *apiserver.Server) {
		ctx, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		a.Shutdown(ctx)
	})
}

func (s *apiServer) finish(end func(*apiserver.Server)) {
	s.mu.Lock()
	one := s.alive
	s.alive = nil
	s.mu.Unlock()
	if one == nil {
		return
	}
	end(one.api)
	one.end()
	one.reload.Wait()
}

// reach waits while the store cannot be reached.
func (s *apiServer) reach(ctx context.Context) error {
	for {
		s.mu.Lock()
		back := s.storage
		s.mu.Unlock()
		if back == nil {
			return nil
		}
		select {
		case <-back:
		case <-ctx.Done():
			return fmt.Errorf("etcd: %w", ctx.Err())
		}
	}
}

func (s *apiServer) setStorageDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.storage != nil {
		close(s.storage)
		s.storage = nil
	}
	if down {
		s.storage = make(chan struct{})
	}
}

// refuse answers a request with an error while a Refusal is in force.
func (s *apiServer) refuse(q *apiserver.Request) error {
	for _, f := range s.cluster.Faults() {
		if r, ok := f.(Refusal); ok && r.meets(s.name, q) {
			return r.err(q)
		}
	}
	return nil
}
