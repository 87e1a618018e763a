// Package identity tells API servers who sends a request: by a client certificate, or by the token of a service account.
package identity

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/util/keyutil"

	"github.com/kmsharness/kmsharness/harness/controlplane"
)

// Identities are those that the API servers of one cluster know.
type Identities struct {
	// Authority signs certificates of servers and clients.
	Authority controlplane.Authority
	// Valid reports whether what a token is bound to is still there; nil: it always is.
	Valid func(Bound) bool

	roots *x509.CertPool
	key   *ecdsa.PrivateKey
	pem   []byte

	mu     sync.Mutex
	signed map[string]bool // clients' certificates
}

// Bound is what a token of a service account is for.
type Bound struct {
	Namespace, Account string
	// Pod and Node are empty for a token that is bound to no pod.
	Pod, Node string
	PodUID    types.UID
	// Secret is that of a legacy token; empty for others.
	Secret, Token string
}

// New has an authority and a key of its own.
func New() (*Identities, error) {
	authority, err := controlplane.NewAuthority()
	if err != nil {
		return nil, err
	}
	i := &Identities{Authority: authority, roots: x509.NewCertPool(), signed: map[string]bool{}}
	if !i.roots.AppendCertsFromPEM(authority.Bundle()) {
		return nil, errors.New("read the certificate of the authority: it has none")
	}
	if i.pem, err = keyutil.MakeEllipticPrivateKeyPEM(); err != nil {
		return nil, fmt.Errorf("make the key of service accounts: %w", err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(i.pem)
	if err != nil {
		return nil, fmt.Errorf("read the key of service accounts: %w", err)
	}
	var ok bool
	if i.key, ok = key.(*ecdsa.PrivateKey); !ok {
		return nil, fmt.Errorf("key of service accounts: expected an ECDSA key, got %T", key)
	}
	return i, nil
}

// Serving is how a server of some names speaks TLS: exactly of these, or also of any that a client asks for. A client may show a certificate.
func (i *Identities) Serving(name string, exactly bool, names ...string) *tls.Config {
	var mu sync.Mutex
	made := map[string]*tls.Certificate{}
	return &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		if made[hello.ServerName] == nil {
			all := names
			if hello.ServerName != "" && !exactly {
				all = append(slices.Clone(names), hello.ServerName)
			}
			pair, err := certificate(i.Authority, name, all...)
			if err != nil {
				return nil, err
			}
			made[hello.ServerName] = pair
		}
		return made[hello.ServerName], nil
	}}
}

// Foreign returns a certificate of an authority that no client trusts.
func (i *Identities) Foreign(name string, names ...string) (*tls.Certificate, error) {
	other, err := controlplane.NewAuthority()
	if err != nil {
		return nil, err
	}
	return certificate(other, name, names...)
}

func certificate(by controlplane.Authority, name string, names ...string) (*tls.Certificate, error) {
	cert, key, err := by.Serving(name, names...)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", name, err)
	}
	return &pair, nil
}

// Authenticate is who sends a request. Without credentials it is system:anonymous; with bad ones there is an error of code 401.
func (i *Identities) Authenticate(r *http.Request) (user.Info, error) {
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		cert := r.TLS.PeerCertificates[0]
		if i.vouched(cert) {
			return authenticated(&user.DefaultInfo{Name: cert.Subject.CommonName, Groups: cert.Subject.Organization}), nil
		}
		return nil, unauthorized()
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		u, err := i.account(token)
		if err != nil {
			return nil, unauthorized()
		}
		return authenticated(u), nil
	}
	return &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}, nil
}

// vouched reports whether the authority signed a client's certificate, which is good now. The signature is looked at once.
func (i *Identities) vouched(cert *x509.Certificate) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	if i.signed[string(cert.Raw)] {
		return !now.Before(cert.NotBefore) && !now.After(cert.NotAfter)
	}
	_, err := cert.Verify(x509.VerifyOptions{Roots: i.roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err == nil {
		i.signed[string(cert.Raw)] = true
	}
	return err == nil
}

func unauthorized() error { return apierrors.NewUnauthorized("Unauthorized") }

func authenticated(u *user.DefaultInfo) user.Info {
	u.Groups = append(u.Groups, user.AllAuthenticated)
	return u
}

type claims struct {
	Issuer    string `json:"iss"`
	Subject   string `json:"sub"`
	IssuedAt  int64  `json:"iat"`
	NotBefore int64  `json:"nbf"`
	Expires   int64  `json:"exp"`
	Private   struct {
		Namespace      string `json:"namespace"`
		ServiceAccount struct {
			Name string `json:"name"`
		} `json:"serviceaccount"`
		Pod  *reference `json:"pod,omitempty"`
		Node *reference `json:"node,omitempty"`
	} `json:"kubernetes.io"`
}

type reference struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid,omitempty"`
}

// Token is a new token, as TokenRequest makes it, and when it expires.
func (i *Identities) Token(b Bound, life time.Duration) (token string, expires time.Time, err error) {
	now := time.Now().Truncate(time.Second)
	expires = now.Add(life)
	c := claims{Issuer: "https://kubernetes.default.svc", Subject: serviceaccount.MakeUsername(b.Namespace, b.Account), IssuedAt: now.Unix(), NotBefore: now.Unix(), Expires: expires.Unix()}
	c.Private.Namespace, c.Private.ServiceAccount.Name = b.Namespace, b.Account
	if b.Pod != "" {
		c.Private.Pod, c.Private.Node = &reference{b.Pod, b.PodUID}, &reference{Name: b.Node}
	}
	token, err = controlplane.SignToken(i.pem, c)
	return token, expires, err
}

// AccountKey signs the tokens of service accounts; in PEM.
func (i *Identities) AccountKey() []byte { return i.pem }

func (i *Identities) account(token string) (*user.DefaultInfo, error) {
	signed, signature, _ := cutLast(token)
	raw, err := base64.RawURLEncoding.DecodeString(signature)
	digest := sha256.Sum256([]byte(signed))
	if err != nil || len(raw) != 64 || !ecdsa.Verify(&i.key.PublicKey, digest[:], new(big.Int).SetBytes(raw[:32]), new(big.Int).SetBytes(raw[32:])) {
		return nil, errors.New("it is not signed by this cluster")
	}
	_, payload, _ := strings.Cut(signed, ".")
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return nil, err
	}
	var c claims
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	if c.Issuer == controlplane.LegacyIssuer {
		return i.legacy(token, text)
	}
	if now := time.Now(); now.After(time.Unix(c.Expires, 0).Add(controlplane.TokenLeeway)) || now.Add(controlplane.TokenLeeway).Before(time.Unix(c.NotBefore, 0)) {
		return nil, errors.New("it has expired")
	}
	b := Bound{Namespace: c.Private.Namespace, Account: c.Private.ServiceAccount.Name}
	info := serviceaccount.ServiceAccountInfo{Namespace: b.Namespace, Name: b.Account}
	if c.Private.Pod != nil && c.Private.Node != nil {
		b.Pod, b.PodUID, b.Node = c.Private.Pod.Name, c.Private.Pod.UID, c.Private.Node.Name
		info.PodName, info.PodUID, info.NodeName = b.Pod, string(b.PodUID), b.Node
	}
	return i.stands(b, info)
}

// legacy returns the user of the token of a Secret, which does not expire.
func (i *Identities) legacy(token string, text []byte) (*user.DefaultInfo, error) {
	var c controlplane.LegacyClaims
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	return i.stands(Bound{Namespace: c.Namespace, Account: c.Account, Secret: c.Secret, Token: token}, serviceaccount.ServiceAccountInfo{Namespace: c.Namespace, Name: c.Account, UID: string(c.AccountUID)})
}

// stands returns the user of a token that is bound to what is still there.
func (i *Identities) stands(b Bound, info serviceaccount.ServiceAccountInfo) (*user.DefaultInfo, error) {
	if i.Valid != nil && !i.Valid(b) {
		return nil, errors.New("what it is bound to is gone")
	}
	u := info.UserInfo()
	return &user.DefaultInfo{Name: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: u.GetExtra()}, nil
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
