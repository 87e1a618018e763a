package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/record/requests"
)

// API is the API server, as the pod's service account reaches it.
type API struct {
	URL *url.URL
	CA  *x509.CertPool
	// TokenFile is read for every request: the kubelet renews it.
	TokenFile string
}

// serviceAccount is where a pod finds its service account.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/"

// InCluster is the API server of the cluster that this process runs in.
func InCluster() (API, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return API{}, errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: expected to run in a pod")
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	text, err := os.ReadFile(serviceAccount + "ca.crt")
	if err != nil {
		return API{}, fmt.Errorf("certificate authority of the cluster: %w", err)
	}
	pool, err := pool(text)
	if err != nil {
		return API{}, fmt.Errorf("certificate authority of the cluster: %w", err)
	}
	return API{URL: &url.URL{Scheme: "https", Host: host + ":" + port}, CA: pool, TokenFile: serviceAccount + "token"}, nil
}

func pool(text []byte) (*x509.CertPool, error) {
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(text) {
		return nil, errors.New("expected certificates in PEM")
	}
	return p, nil
}

// identity is a client of the proxy, as its certificate names it.
type identity struct {
	user   string
	groups []string
}

type identityKey struct{}

func identityOf(r *http.Request) identity {
	id, _ := r.Context().Value(identityKey{}).(identity)
	return id
}

// apiProxy passes requests on to the API server under the identity of their sender.
type apiProxy struct {
	clients *x509.CertPool // who signs the senders' certificates
	now     func() time.Time
	forward *httputil.ReverseProxy
}

// newAPIProxy logs requests to a log.
func newAPIProxy(api API, clients *x509.CertPool, log *lineLog) *apiProxy {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.TLSClientConfig = &tls.Config{RootCAs: api.CA, MinVersion: tls.VersionTLS12}
	base.Proxy = nil
	return &apiProxy{clients: clients, now: time.Now, forward: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(api.URL); impersonate(r.Out.Header, identityOf(r.In)) },
		Transport:     &requests.Transport{Base: &bearer{base, api.TokenFile}, Log: log, Now: time.Now, User: func(r *http.Request) string { return identityOf(r).user }},
		FlushInterval: -1, // watches
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable", "the API server did not answer: "+err.Error())
		},
	}}
}

// impersonate makes a request that of an identity. What the sender says of identities is dropped.
func impersonate(h http.Header, id identity) {
	for name := range h {
		if strings.HasPrefix(name, "Impersonate-") {
			h.Del(name)
		}
	}
	h.Del("Authorization")
	h.Del("Accept-Encoding") // the transport decompresses what it asked for itself, and answers are read
	h.Set("Impersonate-User", id.user)
	for _, g := range id.groups {
		h.Add("Impersonate-Group", g)
	}
}

// bearer adds the token of the pod's service account.
type bearer struct {
	base http.RoundTripper
	file string
}

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := os.ReadFile(b.file)
	if err != nil {
		return nil, fmt.Errorf("token of the service account: %w", err)
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return b.base.RoundTrip(r)
}

// ServeHTTP implements http.Handler. A certificate that is not, or no longer, valid is answered as an API server does: with 401.
func (p *apiProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, err := p.authenticate(r.TLS)
	if err != nil {
		refuse(w, http.StatusUnauthorized, "Unauthorized", "Unauthorized")
		return
	}
	p.forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), identityKey{}, id)))
}

func (p *apiProxy) authenticate(state *tls.ConnectionState) (identity, error) {
	if state == nil || len(state.PeerCertificates) == 0 {
		return identity{}, errors.New("no client certificate")
	}
	cert := state.PeerCertificates[0]
	_, err := cert.Verify(x509.VerifyOptions{Roots: p.clients, CurrentTime: p.now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return identity{cert.Subject.CommonName, cert.Subject.Organization}, err
}

// refuse answers with a metav1.Status.
func refuse(w http.ResponseWriter, code int, reason, message string) {
	text, err := json.Marshal(map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": struct{}{}, "status": "Failure", "message": message, "reason": reason, "code": code})
	if err != nil {
		http.Error(w, message, code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text) // the sender is gone: nobody is left to answer
}
