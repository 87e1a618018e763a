package virtual

import (
	"crypto/tls"
	"net/http"

	"github.com/kmsharness/kmsharness/altsvc"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Serve implements live.Memory.
func (g *ground) Serve(node, mode string) {
	for _, s := range g.cluster.all() {
		if node == "" || s.node == node {
			s.serving.Store(mode)
		}
	}
}

// servesAs reports whether a mode of scenario.Serving is in force.
func (s *server) servesAs(mode string) bool { return s.serving.Load() == mode }

// secure is how a server speaks TLS: the mode counts at each handshake.
func (s *server) secure() *tls.Config {
	own := s.cluster.identities.Serving(s.host, s.aggregated == nil && s.cluster.addressed, s.node, "kubernetes", "kubernetes.default", "kubernetes.default.svc")
	own.NextProtos = []string{"h2", "http/1.1"}
	old, foreign, out := own.Clone(), own.Clone(), own.Clone()
	old.NextProtos = []string{"http/1.1"}
	foreign.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if hello.ServerName != altsvc.DefaultAuthority {
			return own.GetCertificate(hello)
		}
		return s.cluster.identities.Foreign(s.host, hello.ServerName)
	}
	out.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		switch {
		case s.servesAs(scenario.ServingHTTP1):
			return old, nil
		case s.servesAs(scenario.ServingForeign):
			return foreign, nil
		}
		return nil, nil
	}
	return out
}

// advertising is next, which tells clients of other API servers unless it is not to.
func (s *server) advertising(next http.Handler) http.Handler {
	advertised := s.cluster.advertising(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.servesAs(scenario.ServingUnadvertised) {
			if change := s.cluster.altSvc; change != nil && change("") != "" {
				w.Header().Set(altSvcHeader, change(""))
			}
			next.ServeHTTP(w, r)
			return
		}
		advertised.ServeHTTP(w, r)
	})
}
