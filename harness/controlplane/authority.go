package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
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

// validity is longer than any run, and short enough that a forgotten kubeconfig is harmless. The clock of the machine
// may be set back a little.
const (
	validity = 24 * time.Hour
	backdate = time.Hour
)

// Authority signs certificates that the API servers of one cluster believe, and its clients.
type Authority struct {
	// ServerName is the name in the servers' certificates, where it is not that in their URLs; empty: it is.
	ServerName string

	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
}

// NewAuthority is one that is in no file, for servers and clients of a harness.
func NewAuthority() (a Authority, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("make a certificate authority: %w", err)
		}
	}()
	key, err := newKey()
	if err != nil {
		return a, err
	}
	template := certificate("kmsharness-ca")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return a, err
	}
	cert, err := x509.ParseCertificate(der)
	return Authority{cert: cert, key: key, pem: encode(certutil.CertificateBlockType, der)}, err
}

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
	return Authority{cert: certs[0], key: signer, pem: certPEM}, nil
}

// authorityIn makes an authority whose certificate is in a file of a folder, which is made, too.
func authorityIn(dir string) (a Authority, file string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return a, "", err
	}
	if a, err = NewAuthority(); err != nil {
		return a, "", err
	}
	file = filepath.Join(dir, "ca.crt")
	return a, file, os.WriteFile(file, a.pem, 0o600)
}

// Bundle is the authority's certificate in PEM.
func (a Authority) Bundle() []byte { return a.pem }

func (a Authority) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Serving is the certificate and the key, in PEM, of a server on 127.0.0.1 that goes by the names, and by localhost.
func (a Authority) Serving(name string, names ...string) (cert, key []byte, err error) {
	template := certificate(name)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.DNSNames = []string{"localhost"}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	return a.sign(template)
}

// client is the certificate and the key, in PEM, of a client: Kubernetes reads the user from the common name and the groups from the organisations.
// life is as in Certificate.
func (a Authority) client(user string, groups []string, life time.Duration) (cert, key []byte, expires time.Time, err error) {
	template := certificate(user)
	if life != 0 {
		template.NotAfter = time.Now().Add(life).Truncate(time.Second)
	}
	template.Subject.Organization = groups
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	cert, key, err = a.sign(template)
	return cert, key, template.NotAfter, err
}

// RESTConfig is a client configuration with a certificate for user and groups, not rate-limited.
func (a Authority) RESTConfig(user string, groups []string, server string) (*rest.Config, error) {
	cert, key, _, err := a.client(user, groups, 0)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            server,
		TLSClientConfig: rest.TLSClientConfig{CAData: a.pem, CertData: cert, KeyData: key, ServerName: a.ServerName},
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
	cert, key, expires, err := a.client(user, groups, life)
	return append(cert, key...), expires, err
}

// Kubeconfig is a kubeconfig file with a certificate for user and groups.
func (a Authority) Kubeconfig(user string, groups []string, server string) ([]byte, error) {
	cert, key, _, err := a.client(user, groups, 0)
	if err != nil {
		return nil, err
	}
	config := api.NewConfig()
	config.Clusters["kmsharness"] = &api.Cluster{Server: server, CertificateAuthorityData: a.pem, TLSServerName: a.ServerName}
	config.AuthInfos[user] = &api.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts["kmsharness"] = &api.Context{Cluster: "kmsharness", AuthInfo: user}
	config.CurrentContext = "kmsharness"
	text, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of user %q: %w", user, err)
	}
	return text, nil
}

// clientTLS is what a client needs that has a certificate of the authority.
func (a Authority) clientTLS(cert, key []byte) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(cert, key)
	return &tls.Config{RootCAs: a.roots(), Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, err
}

func (a Authority) sign(template *x509.Certificate) (cert, key []byte, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("certificate of %s: %w", template.Subject.CommonName, err)
		}
	}()
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, err
	}
	own, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, own.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(own)
	return encode(certutil.CertificateBlockType, der), key, err
}

func certificate(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// keyPair are the files of a certificate and its key.
type keyPair struct{ cert, key string }

func writeKeyPair(dir, name string, cert, key []byte) (keyPair, error) {
	p := keyPair{filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")}
	return p, errors.Join(os.WriteFile(p.cert, cert, 0o600), os.WriteFile(p.key, key, 0o600))
}
