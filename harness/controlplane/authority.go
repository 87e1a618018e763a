package controlplane

import (
	"crypto"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// The administrator of a control plane; RBAC does not apply to this group.
const (
	adminUser  = "kmsharness-admin"
	adminGroup = "system:masters"
)

// Authority signs certificates that the API servers of one cluster believe, and its clients.
type Authority struct {
	// ServerName is the name in the servers' certificates, where it is not that in their URLs; empty: it is.
	ServerName string

	pki *pki
}

// NewAuthority is one that is in no file, for servers and clients of a harness.
func NewAuthority() (Authority, error) {
	p, err := generatePKI()
	if err != nil {
		return Authority{}, fmt.Errorf("make a certificate authority: %w", err)
	}
	return Authority{pki: p}, nil
}

// Bundle is the authority's certificate in PEM.
func (a Authority) Bundle() []byte { return a.pki.pem }

// LoadAuthority is that of a cluster which somebody else made, from the PEM of its certificate and key.
func LoadAuthority(certPEM, keyPEM []byte) (Authority, error) {
	certs, err := certutil.ParseCertsPEM(certPEM)
	if err != nil {
		return Authority{}, fmt.Errorf("certificate authority: %w", err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return Authority{}, fmt.Errorf("key of the certificate authority: %w", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return Authority{}, fmt.Errorf("key of the certificate authority: a key of type %T cannot sign", key)
	}
	return Authority{pki: &pki{cert: certs[0], key: signer, pem: certPEM}}, nil
}

// Serving is the certificate and the key, in PEM, of a server that goes by the names, and by localhost.
func (a Authority) Serving(name string, names ...string) (cert, key []byte, err error) {
	id, err := a.pki.server(name, names...)
	return id.cert, id.key, err
}

// RESTConfig is a client configuration with a certificate for user and groups, not rate-limited.
func (a Authority) RESTConfig(user string, groups []string, server string) (*rest.Config, error) {
	id, err := a.pki.client(user, groups)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            server,
		TLSClientConfig: rest.TLSClientConfig{CAData: a.pki.pem, CertData: id.cert, KeyData: id.key, ServerName: a.ServerName},
		QPS:             -1,
		UserAgent:       "kmsharness",
	}, nil
}

// AdminConfig is RESTConfig for a user who may do everything.
func (a Authority) AdminConfig(server string) (*rest.Config, error) {
	return a.RESTConfig(adminUser, []string{adminGroup}, server)
}

// Certificate is a certificate for user and groups with its key, in one PEM text. It expires after life, in whole seconds; 0: later than any run ends;
// less than 0: it has expired.
func (a Authority) Certificate(user string, groups []string, life time.Duration) (text []byte, expires time.Time, err error) {
	id, expires, err := a.pki.clientFor(user, groups, life)
	return append(id.cert, id.key...), expires, err
}

// Kubeconfig is a kubeconfig file with a certificate for user and groups.
func (a Authority) Kubeconfig(user string, groups []string, server string) ([]byte, error) {
	id, err := a.pki.client(user, groups)
	if err != nil {
		return nil, err
	}
	config := api.NewConfig()
	config.Clusters["kmsharness"] = &api.Cluster{Server: server, CertificateAuthorityData: a.pki.pem, TLSServerName: a.ServerName}
	config.AuthInfos[user] = &api.AuthInfo{ClientCertificateData: id.cert, ClientKeyData: id.key}
	config.Contexts["kmsharness"] = &api.Context{Cluster: "kmsharness", AuthInfo: user}
	config.CurrentContext = "kmsharness"
	text, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of user %q: %w", user, err)
	}
	return text, nil
}
